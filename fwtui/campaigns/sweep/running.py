"""Runs the cells of a grid one after another on a live session, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import inf

from fwtui.analysis.compare import ENOUGH
from fwtui.campaigns.queue import Queue, Runner
from fwtui.campaigns.sweep.grid import ENDED, Grid, GridCell, KnownRuns
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Settled
from fwtui.live.protocols import SessionDriver
from fwtui.stream.run import Run

MIN_WITHIN, MAX_WITHIN = 1, 86400  # seconds
PASSES_SECONDS = 1.0  # default per cell: many cells are more useful than many repetitions


class Sweep:
    """A running sweep; call `tick()` often. Finished cells are not repeated, and cells that would exceed the time are skipped."""

    def __init__(
        self,
        source: SessionDriver,
        grid: Grid,
        within: float,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Prepare a sweep of `within` seconds in all. Raises Refused for an invalid time."""
        if not MIN_WITHIN <= within <= MAX_WITHIN:
            raise Refused(f"{within:g} s for a sweep is outside {MIN_WITHIN} to {MAX_WITHIN}; choose a time in this range")
        self.source = source
        self.grid = grid
        self.queue = Queue(source, within, clock, most=inf)
        self._runner = Runner(self.queue, iter(()), self._skip)
        self._known_runs = KnownRuns(source.model)
        self.current: GridCell | None = None  # cell of the current run
        self.left_out: dict[tuple[object, ...], str] = {}  # reasons for skipped cells, by the identity of their experiment

    @property
    def going(self) -> bool:
        return self.queue.going

    @property
    def done(self) -> int:
        """Return the number of finished experiments."""
        return sum(self.ended(cell) for cell in self.grid.order)

    def run(self, cell: GridCell) -> Run | None:
        """Return the session's run of that cell."""
        return self._known_runs.run(cell.key) if cell.key else None

    def ended(self, cell: GridCell) -> bool:
        """Return whether that cell is finished; a cancelled cell may run again."""
        run = self.run(cell)
        return run is not None and run.state in ENDED

    def start(self, within: float | None = None) -> None:
        """Begin or continue; `within` sets the remaining time."""
        if within is not None:
            self.queue.seconds = self.queue.spent + within
        self.left_out.clear()
        self.queue.go()
        self._runner = Runner(self.queue, self._wanted(), self._skip)
        self.source.mark(f"sweep {self.grid.title}")

    def cancel(self) -> None:
        """Stop the current run and start no other."""
        self.queue.hold()
        if self.source.busy:
            self.source.cancel()

    def tick(self) -> None:
        """Start the next cell if the session is free."""
        self._runner.tick()

    def _wanted(self) -> Iterator[Settled]:
        """Yield the next cell's experiment and record its result; stop the clock after the last one."""
        while self.going:
            cell = next((c for c in self.grid.order if c.key not in self.left_out and not self.ended(c)), None)
            if cell is None or cell.experiment is None:
                break
            self.current = cell
            yield self._repeated(cell.experiment)
            if not self.ended(cell):  # after a crash or a cancellation the cell is repeated only on request
                self.left_out.setdefault(cell.key, "its run did not finish")
            self.current = None
        self.queue.hold()

    def _skip(self, experiment: Settled, why: str) -> None:
        assert self.current is not None
        self.left_out[self.current.key] = why

    def _repeated(self, experiment: Settled) -> Settled:
        """Request enough repetitions for a verdict if the run's own rules give fewer and its time budget allows it."""
        waiting = sum(not self.ended(cell) and cell.key not in self.left_out for cell in self.grid.order)
        rule = (experiment.budget / ENOUGH, 0), (inf, ENOUGH)
        return self.queue.repeated(experiment, rule, self.queue.left / max(waiting, 1))
