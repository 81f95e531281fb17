"""The start: no work is repeated, what waits for the first frame, and the state that the next start restores."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from apps import dashboard_of, screen_of
from fake_live import FakeLive
from pressing import WIDE, go, opened, press, proceed, until
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Input

from fwtui.experiment.experiment import Experiment, changed, defaults, settle
from fwtui.stream.requests import Hardware
from fwtui.tui.app import ui_state
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.ui_state import SavedUiState
from fwtui.tui.frame.appearance import HEIGHTS, WIDTHS, classes_at
from fwtui.tui.frame.places import PLACES
from fwtui.tui.learn.screen import LearnScreen
from fwtui.tui.run.live_screen import RunScreen


def test_the_size_classes_are_those_of_textual() -> None:
    screen = Screen[None]()
    for width in range(1, 130):
        for height in range(1, 60):
            given = screen._get_breakpoint_classes(width, WIDTHS) | screen._get_breakpoint_classes(height, HEIGHTS)
            assert classes_at(width, height) == given


async def test_styles_of_a_new_screen_are_matched_once(dashboard: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching the styles of all widgets takes Textual as long as the rest of the start."""
    passes: list[list[DOMNode]] = []
    update = Stylesheet.update_nodes

    def counted(self: Stylesheet, nodes: Iterable[DOMNode], animate: bool = False) -> None:
        passes.append(list(nodes))
        update(self, passes[-1], animate)

    monkeypatch.setattr(Stylesheet, "update_nodes", counted)
    parsed: list[Stylesheet] = []
    parse = Stylesheet.reparse
    monkeypatch.setattr(Stylesheet, "reparse", lambda self: parsed.append(self) or parse(self))
    async with opened(dashboard) as pilot:
        assert dashboard.screen.has_class("-wide", "-tall") and not dashboard.screen.query(".-narrow, .-short")
        for place in (PLACES[0], PLACES[3]):
            await press(pilot, place.key)
            widgets = {dashboard.screen, *dashboard.screen.query("*")}
            assert len(widgets) > 15
            assert not [nodes for nodes in passes if len(nodes) > 1 and nodes[0] is dashboard.screen]
        assert any(len(nodes) for nodes in passes) and len(parsed) == 1, "the theme's, and never for another place"
        dashboard.theme = "nord"
        passes.clear()
        await press(pilot, PLACES[0].key)
        assert any(nodes[0] is dashboard.screen for nodes in passes), "a hidden screen gets the new theme when it is shown"


async def test_child_processes_start_after_the_first_frame(live: FakeLive) -> None:
    told: list[str] = []

    class Watched(FwtuiApp):
        def post_display_hook(self) -> None:
            told.append("frame")

    drain = live.drain
    live.drain = lambda: (told.append("drain"), drain())[1]  # type: ignore[method-assign]
    async with Watched(live, Experiment(kernel="tiled-cpu", n=512), found=Hardware(reason="none")).run_test(size=WIDE) as pilot:
        await until(pilot, lambda: told.count("drain") > 2)
    assert told.index("frame") < told.index("drain")


USUAL = defaults(False)
SETTLED = changed(settle(USUAL))


def begun(live: FakeLive, usual: Experiment = USUAL) -> FwtuiApp:
    return dashboard_of(live, usual, saved_state=ui_state.load())


async def test_a_kernel_that_cannot_run_here_is_not_restored(live: FakeLive) -> None:
    ui_state.save(
        SavedUiState(default=USUAL, form=Experiment(kernel="naive", n=4096), rows={"run": {"kernel": "naive", "n": "4096"}})
    )
    app = dashboard_of(live, USUAL, saved_state=ui_state.load(), found=None)
    async with opened(app) as pilot:
        screen = screen_of(app, RunScreen)
        await until(pilot, lambda: app.view is not None and app.view.found is not None)
        assert screen.draft.kernel.id == USUAL.kernel
        assert "naive needs a GPU, and this machine has none" in await go(pilot)


async def test_form_and_course_are_restored_unless_the_settings_changed(live: FakeLive) -> None:
    app = begun(live)
    async with app.run_test(size=WIDE) as pilot:
        app.screen.query_one("#field-n", Input).value = "300"
        await proceed(pilot)
        app.screen.query_one("#field-density", Input).value = "."
        await proceed(pilot, "alt+2")
        app.screen.query_one("#field-within", Input).value = "9"
        app.screen.query_one("#field-n", Input).value = "64.."
        await proceed(pilot, "alt+6", "t")
        await proceed(pilot, ")")
        assert isinstance(app.screen, LearnScreen) and app.screen.progress.place == 1
    app = begun(FakeLive())
    async with opened(app) as pilot:
        assert isinstance(app.screen, RunScreen) and app.screen.draft.kernel.id == SETTLED.kernel
        fields = [app.screen.query_one(f"#field-{name}", Input).value for name in ("n", "density")]
        assert fields == ["300", "."], "also what cannot be read"
        await proceed(pilot, "alt+2")
        assert [app.screen.query_one(f"#field-{name}", Input).value for name in ("within", "n")] == ["9", "64.."]
        await proceed(pilot, "alt+6", "t")
        assert isinstance(app.screen, LearnScreen) and app.screen.progress.place == 1
    other = changed(USUAL, n=64)
    app = begun(FakeLive(), other)
    async with opened(app) as pilot:
        assert isinstance(app.screen, RunScreen) and app.screen.draft.experiment().n == 64
        await proceed(pilot, "alt+2")
        assert app.screen.query_one("#field-n", Input).value == "64..512"


@pytest.mark.parametrize("become", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_a_small_regular_file_is_a_last_visit(become: Callable[[Path], None]) -> None:
    ui_state.path().parent.mkdir(parents=True, exist_ok=True)
    ui_state.path().unlink(missing_ok=True)
    become(ui_state.path())
    assert ui_state.load() == SavedUiState()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"version":2,"course":"x"}', '{"form":{"kernel":"gone"}}', '{"course":1}', "[" * 100_000, "\x00"],
    ids=lambda text: text[:20],
)
def test_a_damaged_last_visit_is_ignored(text: str) -> None:
    ui_state.path().parent.mkdir(parents=True)
    ui_state.path().write_text(text)
    assert ui_state.load() == SavedUiState()


def test_a_form_with_an_unknown_kernel_is_dropped_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("/hw/mine.py",)
    ui_state.save(SavedUiState(default=USUAL, form=changed(USUAL, kernel="never-admitted"), course="tiles", own_files=files))
    assert ui_state.load() == SavedUiState(default=USUAL, course="tiles", own_files=files)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    ui_state.save(SavedUiState(course="blocked"))
    assert ui_state.load() == SavedUiState(), "what cannot be written is not remembered"
