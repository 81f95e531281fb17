"""Sessions that are recorded, killed, continued, named, cut and joined in any order: nothing that was shown is ever lost.

Beside each file stands a plain list of what was shown; every file is read again after each step.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from attacking import SEED, bounded
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule
from test_keeping import killed, offered, taken  # pyright: ignore[reportMissingImports]

from fwtui.experiment.experiment import Experiment
from fwtui.live.session import Live
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.reader import load
from fwtui.sessions.rewrite import SessionCut, merge, trim
from fwtui.stream import events
from fwtui.stream.model import Model

UNFINISHED = "running"
OUTCOMES = st.sampled_from(["done", "failed", "cancelled", "wrong"])


class Shown(NamedTuple):
    """A run, as far as it matters: all of it is in the file, or it is lost."""

    id: int
    n: int
    state: str
    median: float | None


def shown(path: Path) -> list[Shown]:
    """The runs of a file, as a replay shows them."""
    model = Model()
    for line in load(path).lines:
        model.apply(line.event)
    return [Shown(run.id, run.experiment.n, run.state, run.done.median if run.done else None) for run in model.runs.values()]


class Sessions(RuleBasedStateMachine):
    """One user, who has at most one dashboard open."""

    files = Bundle("files")

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        self._before = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = self._place.name
        self._numbers = itertools.count()
        self.live: Live | None = None
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
        assert self.live is not None
        recorder = self.live.recorder or self.live.keeper
        assert recorder is not None and recorder.failure is None
        return recorder.path

    def _new(self) -> Path:
        return Path(self._place.name) / f"made-{next(self._numbers)}{SUFFIX}"

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
        assert self.live is not None
        number = self.runs[-1].id
        self.live.tell(events.RunDone(t=self.live.now, run=number, outcome=outcome, median=median, count=1))
        self.runs[-1] = Shown(number, n, outcome, median)

    def _begin(self, n: int) -> None:
        assert self.live is not None
        number = max((run.id for run in self.runs), default=0) + 1
        started = events.RunStarted(t=self.live.now, run=number, experiment=Experiment(n=n), title="T", backend="cpu", phases=())
        self.live.tell(started)
        self.runs.append(Shown(number, n, UNFINISHED, None))
        self.ends_with_run = True

    @precondition(lambda self: self.live is not None)
    @rule(target=files, title=st.sampled_from(["a", "b c", "é", "x" * 70]))
    def named(self, title: str) -> Path:
        """From now on the session is a recording of the user's own."""
        assert self.live is not None
        self.live.name(f"{next(self._numbers)} {title}")
        return self._path

    @precondition(lambda self: self.live is not None)
    @rule(target=files, n=st.none() | st.integers(1, 99), lost=st.integers(0, 20))
    def was_killed(self, n: int | None, lost: int) -> Path:
        """In the middle of a run, or between two; a power cut may take the end of the last line."""
        assert self.live is not None
        if n is not None:
            self._begin(n)
        path = killed(self.live)
        told = list(self.runs)
        if lost and self.ends_with_run:
            os.truncate(path, path.stat().st_size - lost)
            last = told.pop()
            if last.state != UNFINISHED:
                told.append(last._replace(state=UNFINISHED, median=None))
        self.live.close()
        self.live = None
        return self._left(path, told)

    @precondition(lambda self: self.live is not None)
    @rule(target=files)
    def closed(self) -> Path:
        assert self.live is not None
        path, told = self._path, list(self.runs)
        self.live.close()
        self.live = None
        return self._left(path, told)

    def _left(self, path: Path, told: list[Shown]) -> Path:
        if path.exists():
            self.known[path] = told
        else:
            assert all(run.state != "done" for run in told), "a session with a finished run is kept"
        return path

    @precondition(lambda self: self.live is not None and not self.runs and self.live.recorder is None)
    @rule()
    def continued(self) -> None:
        """The last session that this machine has kept goes on."""
        assert self.live is not None
        found = offered(self.live)
        if found is None:
            return
        before = self.known.pop(found.path)
        self.live.go_on(taken(found))
        self.ends_with_run = False
        self.runs = [run._replace(state="cancelled") if run.state == UNFINISHED else run for run in before]

    @rule(target=files, path=files, chosen=st.sets(st.integers(0, 5), min_size=1))
    def trimmed(self, path: Path, chosen: set[int]) -> Path:
        told = self.known.get(path, [])
        runs = [run for place, run in enumerate(told) if place in chosen]
        if runs:
            out = self._new()
            trim(path, SessionCut(runs=frozenset(run.id for run in runs)), out)
            self.known[out] = runs
            return out
        return path

    @rule(target=files, first=files, second=files)
    def merged(self, first: Path, second: Path) -> Path:
        if first not in self.known or second not in self.known:
            return first
        out, before = self._new(), self.known[first]
        merge([first, second], out)
        greatest = max((run.id for run in before), default=0)
        self.known[out] = before + [run._replace(id=run.id + greatest) for run in self.known[second]]
        return out

    @rule(path=consumes(files))
    def forgotten(self, path: Path) -> None:
        """The user no longer works with it; it stays as it is."""

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
