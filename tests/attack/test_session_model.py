"""Sessions that are recorded, killed, continued, named, cut and joined in any order: nothing that was shown is ever lost.

Beside each file stands a plain list of what was shown; every file is read again after each step.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from attacking import SEED, bounded
from builders import run_started
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule
from test_autosave import killed, offered, taken  # pyright: ignore[reportMissingImports]

from fwtui.experiment.experiment import Experiment
from fwtui.live.session import Live
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.reader import load
from fwtui.stream import events
from fwtui.stream.model import Model

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
    model = Model()
    for line in load(path).lines:
        model.apply(line.event)
    return [Shown(run.id, run.experiment.n, run.state, run.done.median if run.done else None) for run in model.runs.values()]


class Dashboard:
    """A kept live session without child processes; each method returns a path, or "", as text."""

    def __init__(self) -> None:
        self.live = Live(telemetry_hz=0)
        self.live.keep()

    def path(self) -> str:
        recorder = self.live.recorder or self.live.keeper
        assert recorder is not None and recorder.failure is None
        return str(recorder.path)

    def is_named(self) -> bool:
        return self.live.recorder is not None

    def runs(self) -> list[int]:
        return [run.id for run in self.live.model.runs.values()]

    def begin(self, run: int, n: int) -> None:
        t, asked = self.live.now, Experiment(n=n)
        self.live.emit(run_started(asked, run, t))

    def end(self, run: int, outcome: str, median: float) -> None:
        self.live.emit(events.RunDone(t=self.live.now, run=run, outcome=outcome, median=median, count=1))

    def name(self, title: str) -> None:
        self.live.name(title)

    def go_on(self) -> str | None:
        """Continue the last kept session of this machine and return the path of its file."""
        found = offered(self.live)
        if found is not None:
            self.live.go_on(taken(found))
        return None if found is None else str(found.path)

    def close(self) -> None:
        self.live.close()

    def kill(self) -> str:
        path = killed(self.live)
        self.live.close()
        return str(path)


class DashboardProcess:
    """The dashboard in a separate process, which a test really kills."""

    def __init__(self) -> None:
        words = f"import sys; sys.path[:0] = {sys.path!r}; import test_session_model; test_session_model.serve()"
        command = [sys.executable, "-c", words]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: self._asked(name, *given)

    def _asked(self, *words: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(words), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._asked("close")
        self._process.communicate()
        assert self._process.returncode == 0

    def kill(self) -> str:
        path = self._asked("path")
        self._process.kill()
        self._process.communicate()
        return path


def serve() -> None:
    """Carry out each command line of standard input and print its result."""
    dashboard = Dashboard()
    for line in sys.stdin:
        name, *given = json.loads(line)
        print(json.dumps(getattr(dashboard, name)(*given)), flush=True)


class Sessions(RuleBasedStateMachine):
    """State machine of one user with at most one open dashboard."""

    files = Bundle("files")
    opens: type[Any] = Dashboard

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        self._before = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = self._place.name
        self._numbers = itertools.count()
        self.live: Any = None  # the dashboard
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
        return Path(self.live.path())

    def _new(self) -> Path:
        return Path(self._place.name) / f"made-{next(self._numbers)}{SUFFIX}"

    @initialize()
    def a_dashboard(self) -> None:
        self.opened()

    @precondition(lambda self: self.live is None)
    @rule()
    def opened(self) -> None:
        self.live, self.runs, self.ends_with_run = self.opens(), [], False

    @precondition(lambda self: self.live is not None)
    @rule(n=st.integers(1, 99), outcome=OUTCOMES, median=st.floats(1e-6, 1e3))
    def ran(self, n: int, outcome: str, median: float) -> None:
        self._begin(n)
        number = self.runs[-1].id
        self.live.end(number, outcome, median)
        self.runs[-1] = Shown(number, n, outcome, median)

    def _begin(self, n: int) -> None:
        number = max((run.id for run in self.runs), default=0) + 1
        self.live.begin(number, n)
        self.runs.append(Shown(number, n, UNFINISHED, None))
        self.ends_with_run = True

    @precondition(lambda self: self.live is not None)
    @rule(target=files, title=st.sampled_from(["a", "b c", "é", "x" * 70]))
    def named(self, title: str) -> Path:
        """Turn the session into a named recording."""
        self.live.name(f"{next(self._numbers)} {title}")
        return self._path

    @precondition(lambda self: self.live is not None)
    @rule(target=files, n=st.none() | st.integers(1, 99), lost=st.integers(0, 20))
    def was_killed(self, n: int | None, lost: int) -> Path:
        """Kill the dashboard during or between runs; a power cut may also truncate the last line."""
        if n is not None:
            self._begin(n)
        path = Path(self.live.kill())
        told = list(self.runs)
        if lost and self.ends_with_run:
            os.truncate(path, path.stat().st_size - lost)
            last = told.pop()
            if last.state != UNFINISHED:
                told.append(last._replace(state=UNFINISHED, median=None))
        self.live = None
        return self._left(path, told)

    @precondition(lambda self: self.live is not None)
    @rule(target=files)
    def closed(self) -> Path:
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

    @precondition(lambda self: self.live is not None and not self.runs and not self.live.is_named())
    @rule()
    def continued(self) -> None:
        """Continue the last kept session of this machine."""
        path = self.live.go_on()
        if path is None:
            return
        before = self.known.pop(Path(path))
        self.ends_with_run = False
        self.runs = [run._replace(state="cancelled") if run.state == UNFINISHED else run for run in before]

    @rule(path=consumes(files))
    def forgotten(self, path: Path) -> None:
        """Stop using the session; its file does not change."""

    @invariant()
    def nothing_is_lost(self) -> None:
        for path, told in self.known.items():
            assert shown(path) == told, path
        if self.live is not None:
            assert shown(self._path) == self.runs
            assert self.live.runs() == [run.id for run in self.runs]


TestSessions = pytest.mark.attack(seed(SEED)(Sessions.TestCase))
TestSessions.settings = bounded(6)


@pytest.mark.slow
class TestSessionsInManyCases(Sessions.TestCase):
    settings = bounded(2000)


class KilledSessions(Sessions):
    opens = DashboardProcess


@pytest.mark.slow
class TestSessionsOfProcessesThatAreKilled(KilledSessions.TestCase):
    settings = bounded(20)
