"""Fixtures of screens: no clock, no child processes, no real GPU, and short waits."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import pytest_textual_snapshot
from apps import dashboard_of
from builders import write_session
from fake_live import FakeLive
from packed_picture import PackedPicture
from rich.console import RenderableType
from textual import _wait, screen
from textual._compositor import Compositor
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from fwtui.common.signals import restore_handlers
from fwtui.sessions import reader
from fwtui.stream import events
from fwtui.tui.app import input_queue
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.loaded_recording import Recording, named

_parsed: dict[object, list[RuleSet]] = {}
_variables = WeakKeyDictionary[Stylesheet, tuple[dict[str, str] | None, frozenset[tuple[str, str]]]]()
_parse = Stylesheet._parse_rules
_render_update = Compositor.render_update


def _parsed_once(self: Stylesheet, css: str, read_from: tuple[str, str], *more: object, **named: object) -> list[RuleSet]:
    """Parse each style sheet once; parsing takes a fifth of the start of an application."""
    known, variables = _variables.get(self, (None, frozenset()))
    if known is not self._variables:
        variables = frozenset(self._variables.items())
        _variables[self] = self._variables, variables
    key = (variables, css, read_from, more, *named.values())
    if key not in _parsed:
        _parsed[key] = _parse(self, css, read_from, *more, **named)  # type: ignore[arg-type]
    return _parsed[key]


def _drawn_when_read(self: Compositor, full: bool = False, **how: Any) -> RenderableType | None:
    """Draw only full frames, which a test reads; drawing the others would take a quarter of the time."""
    if full:
        return _render_update(self, full=True, **how)
    self._dirty_regions.clear()
    return None


def _at_work(app: App[Any]) -> Iterator[Coroutine[Any, Any, Any]]:
    """Yield, for each busy widget, a coroutine that ends when it has handled its current messages."""
    for widget in (app, *app.screen.walk_children(with_self=True)):
        ready, done = widget._message_queue.ready_event, asyncio.Event()
        if (ready.is_set() or not ready._waiters) and widget.call_later(done.set):  # type: ignore[attr-defined]
            yield done.wait()


async def _wait_for_those_at_work(self: Pilot[Any], timeout: float = 30.0) -> bool:
    """Wait only for busy widgets; Pilot would send a message to every widget at each key and pause."""
    failed = asyncio.ensure_future(self.app._exception_event.wait())
    for _ in range(9):
        if failed.done() or not (waiting := [*_at_work(self.app)]):
            break
        handled = asyncio.gather(*waiting)
        ended, _ = await asyncio.wait([failed, handled], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        assert ended, "a widget is stuck"
        handled.cancel()
    return failed.cancel()


@pytest.fixture
def every_frame() -> None:
    """Draw every frame, as a terminal does, for tests of drawing."""


# pauses of a quarter of the idle time that Textual waits for, which takes half of the tests' time; a pause has to be longer than
# a frame of the screen, so frames are a quarter as long too
SHORTER = ((_wait, "SLEEP_GRANULARITY"), (_wait, "SLEEP_IDLE"), (screen, "UPDATE_PERIOD"))
QUICKER: tuple[tuple[Any, str, Any], ...] = (
    *((module, name, getattr(module, name) / 4) for module, name in SHORTER),
    *((input_queue, name, 0.001) for name in ("ROW_SECONDS", "WAIT_SECONDS")),  # tests press keys faster than people
    (Stylesheet, "_parse_rules", _parsed_once),
    (RuleSet, "__hash__", object.__hash__),  # the default one, in C: each style hashes every rule
    (Pilot, "_wait_for_screen", _wait_for_those_at_work),
    (pytest_textual_snapshot, "SVGImageExtension", PackedPicture),  # `snap_compare` takes the one that its module names
    (Compositor, "render_update", _drawn_when_read),
)


@pytest.fixture(autouse=True)
def _quick_screens(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, quicker in QUICKER[: -1 if "every_frame" in request.fixturenames else None]:
        monkeypatch.setattr(owner, name, quicker)


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """Undo terminal.listen(), which expects the program to end with its app: a later SIGINT would end the tests."""
    with restore_handlers():
        yield
        signal.set_wakeup_fd(-1)


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # what was measured on this machine
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def live() -> FakeLive:
    return FakeLive()


@pytest.fixture
def dashboard(live: FakeLive) -> FwtuiApp:
    """Return the dashboard of a machine without a GPU."""
    return dashboard_of(live)


@pytest.fixture
def replay_of(tmp_path: Path) -> Callable[..., FwtuiApp]:
    """Return a function that replays events, paused at `start` seconds (default: the end)."""

    def make(told: list[events.Event], start: float | None = None, closed: bool = True) -> FwtuiApp:
        path = write_session(tmp_path / "synthetic.fwt.jsonl", told, closed)
        loaded = reader.load(path)
        return FwtuiApp(replay=Recording(named(path), loaded, start=loaded.duration if start is None else start), still=True)

    return make
