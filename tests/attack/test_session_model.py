"""Sessions that are recorded, killed and named in any order: nothing that was shown is ever lost.

Beside each file stands a plain list of what was shown; every file is read again after each step.
"""

import itertools
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from attacking import SEED, bounded
from builders import model_of, run_started
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from test_autosave import killed  # pyright: ignore[reportMissingImports]

from fwtui.experiment.experiment import Experiment
from fwtui.live.session import Live
from fwtui.sessions.reader import load
from fwtui.stream import events

UNFINISHED = "running"
OUTCOMES = st.sampled_from(["done", "failed", "cancelled", "wrong"])


class Shown(NamedTuple):
    """Identity of a run: the file contains all of its events, or the run is lost."""

    id: int
    n: int
    state: str
    median: float | None


def shown(path: Path) -> list[Shown]:
    """Return the runs of a file as a replay shows them."""
    model = model_of(line.event for line in load(path).lines)
    return [Shown(run.id, run.experiment.n, run.state, run.done.median if run.done else None) for run in model.runs.values()]


class Sessions(RuleBasedStateMachine):
    """State machine of one user with at most one open dashboard."""

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        self._before = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = self._place.name
        self._numbers = itertools.count()
        self.live: Any = None  # the session of the dashboard, without child processes
        self.runs: list[Shown] = []  # of the dashboard
        self.ends_with_run = False  # whether the last line of its file is one of the last run
        self.known: dict[Path, list[Shown]] = {}  # what every other file must have

    def teardown(self) -> None:
        if self.live is not None:
            self.live.close()
        if self._before is None:
            del os.environ["XDG_DATA_HOME"]
        else:
            os.environ["XDG_DATA_HOME"] = self._before
        self._place.cleanup()

    @property
    def _path(self) -> Path:
        recorder = self.live.recorder or self.live.keeper
        assert recorder.failure is None
        return recorder.path

    @initialize()
    def a_dashboard(self) -> None:
        self.opened()

    @precondition(lambda self: self.live is None)
    @rule()
    def opened(self) -> None:
        self.live, self.runs, self.ends_with_run = Live(telemetry_hz=0), [], False
        self.live.keep()

    @precondition(lambda self: self.live is not None)
    @rule(n=st.integers(1, 99), outcome=OUTCOMES, median=st.floats(1e-6, 1e3))
    def ran(self, n: int, outcome: str, median: float) -> None:
        self._begin(n)
        number = self.runs[-1].id
        self.live.emit(events.RunDone(t=self.live.now, run=number, outcome=outcome, median=median, count=1))
        self.runs[-1] = Shown(number, n, outcome, median)

    def _begin(self, n: int) -> None:
        number = max((run.id for run in self.runs), default=0) + 1
        self.live.emit(run_started(Experiment(n=n), number, self.live.now))
        self.runs.append(Shown(number, n, UNFINISHED, None))
        self.ends_with_run = True

    @precondition(lambda self: self.live is not None)
    @rule(title=st.sampled_from(["a", "b c", "é", "x" * 70]))
    def named(self, title: str) -> None:
        """Turn the session into a named recording."""
        self.live.name(f"{next(self._numbers)} {title}")

    @precondition(lambda self: self.live is not None)
    @rule(n=st.none() | st.integers(1, 99), lost=st.integers(0, 20))
    def was_killed(self, n: int | None, lost: int) -> None:
        """Kill the dashboard during or between runs; a power cut may also truncate the last line."""
        if n is not None:
            self._begin(n)
        path = killed(self.live)
        self.live.close()
        told = list(self.runs)
        if lost and self.ends_with_run:
            os.truncate(path, path.stat().st_size - lost)
            last = told.pop()
            if last.state != UNFINISHED:
                told.append(last._replace(state=UNFINISHED, median=None))
        self.live = None
        self._left(path, told)

    @precondition(lambda self: self.live is not None)
    @rule()
    def closed(self) -> None:
        path, told = self._path, list(self.runs)
        self.live.close()
        self.live = None
        self._left(path, told)

    def _left(self, path: Path, told: list[Shown]) -> None:
        if path.exists():
            self.known[path] = told
        else:
            assert all(run.state != "done" for run in told), "a session with a finished run is kept"

    @invariant()
    def nothing_is_lost(self) -> None:
        for path, told in self.known.items():
            assert shown(path) == told, path
        if self.live is not None:
            assert shown(self._path) == self.runs
            assert [run.id for run in self.live.model.runs.values()] == [run.id for run in self.runs]


TestSessions = pytest.mark.attack(seed(SEED)(Sessions.TestCase))
TestSessions.settings = bounded(6)


@pytest.mark.slow
class TestSessionsInManyCases(Sessions.TestCase):
    settings = bounded(2000)
