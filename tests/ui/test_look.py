"""Appearance: themes, other keys, reproducible pictures, and the large figures of presenter mode."""

import os
import re
import string
from pathlib import Path
from unittest.mock import patch

import pytest
import scenes
from apps import Replay, dashboard_of, own_classes
from builders import model_of
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import opened, press
from processes import fwtui
from recorded_sessions import GOLDEN
from textual.widget import Widget
from textual.widgets import Digits

from fwtui.__main__ import main
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.run_summary import summarise
from fwtui.common.errors import Refused
from fwtui.machine.settings import Settings, Value
from fwtui.tui.actions import Action, key_name, table
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.appearance import THEMES, load_appearance
from fwtui.tui.frame.bindings import TO_PLACES
from fwtui.tui.frame.places import PLACES, load
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.run.run_panel import LargeNumber, figure, headline_rows
from fwtui.tui.widgets.large import TALL, filled
from fwtui.tui.widgets.run_text import RunSubject


def said(**values: str) -> Settings:
    return Settings(Path(), {name.replace("__", "."): Value(text, "file", "config.toml") for name, text in values.items()})


async def test_the_theme_follows_the_settings(live: FakeLive) -> None:
    app = dashboard_of(live, look=load_appearance(said(theme="ansi-dark")))
    async with opened(app):
        assert app.theme == "ansi-dark" and app.theme in THEMES


DIALOGS = {
    "a dialog": "frame.dialogs:Dialog",
    "the help": "frame.dialogs:HelpScreen",
    "a question": "frame.dialogs:ConfirmScreen",
    "the form": "frame.dialogs:FormScreen",
    "a race": "compare.race:RaceScreen",
    "the ladder": "compare.ladder_screen:LadderScreen",
    "a kernel that is watched": "watch.screen:WatchScreen",
}


def screens() -> dict[str, list[Action]]:
    """Return the rows of every screen and every dialog, by its description."""
    found = {title: [*table(load(where)).values()] for title, where in DIALOGS.items()}
    for place in PLACES:
        for where, suffix in ((place.live, ""), (place.recorded, " of a replay")):
            if where:
                found[f"the screen {place.title}{suffix}"] = [*table(load(where)).values(), *TO_PLACES]
    return found


def test_every_binding_of_every_screen_has_an_id_and_no_two_share_a_key_by_chance() -> None:
    for words, bindings in screens().items():
        assert all(b.id and b.tooltip for b in bindings), words
        by_key: dict[str, set[str]] = {}
        for binding in bindings:
            for key in binding.key.split(","):
                by_key.setdefault(key, set()).add(str(binding.id))
        assert {key: ids for key, ids in by_key.items() if len(ids) > 1 and ids != {"quit", "close"}} == {}, words


def test_a_key_has_one_meaning_everywhere() -> None:
    """Compare the titles of all letters and signs; arrows, Enter and Esc are exempt."""
    signs = {*string.ascii_letters, *string.punctuation, *map(key_name, string.punctuation), "space"}
    meanings: dict[str, set[str]] = {}
    for row in (row for rows in screens().values() for row in rows):
        for key in row.key.split(","):
            if key in signs and row.description != "Close":  # closes what it has opened
                meanings.setdefault(key, set()).add(row.description)
    alike = {
        "q": {"Quit", "Back", "Cancel"},
        "r": {"Run", "Sweep", "Run here", "r"},
        "y": {"Save", "Yes"},
        "(": {"Previous marker", "Previous step"},
        ")": {"Next marker", "Next step"},
    }
    wrong = {key: titles for key, titles in meanings.items() if len(titles) > 1 and not titles <= alike.get(key, set())}
    assert not wrong
    assert [meanings[key] for key in "gvxt"] == [{"Race"}, {"View"}, {"Cursor"}, {"Course"}]


def test_each_class_name_in_styles_is_that_of_one_widget() -> None:
    """Textual ignores selectors without a match, so a renamed widget would silently lose its styles."""
    ours = [kind for kind in own_classes() if issubclass(kind, Widget)]
    found = [Widget]
    for kind in found:
        found += kind.__subclasses__()
    names = [kind.__name__ for kind in ours]
    assert len(names) > 50 and len(set(names)) == len(names)
    selectors = [part for kind in ours for part in re.findall(r"([^{}]+)\{", vars(kind).get("DEFAULT_CSS", ""))]
    named = {name for part in selectors for name in re.findall(r"(?<![\w.#:$-])[A-Z]\w+", part)}
    assert len(named) > 50 and named <= {kind.__name__ for kind in found}


def test_an_invalid_look_is_refused() -> None:
    for settings, words in ((said(theme="pink"), "no theme 'pink'"),):
        with pytest.raises(Refused, match=words):
            load_appearance(settings)


def test_a_picture_does_not_depend_on_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('theme = "nord"\n')
    here, there = tmp_path / "a.svg", tmp_path / "b.svg"
    assert main(["render", str(GOLDEN), "-o", str(here), "--size", "90x24"]) == 0
    odd = {
        "NO_COLOR": "1", "TERM": "dumb", "LANG": "C", "LC_ALL": "C", "TZ": "Asia/Tokyo", "COLUMNS": "20", "LINES": "5",
        "COLORTERM": "", "TEXTUAL_THEME": "dracula", "TEXTUAL_FILTERS": "dim", "TEXTUAL_COLOR_SYSTEM": "standard",
        "TEXTUAL_DIM_FACTOR": "10", "TEXTUAL_PRESS": "q", "FWTUI_THEME": "gruvbox",
        "FWTUI_CONFIG": str(tmp_path / "config.toml"), "PYTHONHASHSEED": "7",
    }  # fmt: skip
    with patch.dict(os.environ, odd):
        done = fwtui(tmp_path, "render", str(GOLDEN), "-o", str(there), "--size", "90x24")
    assert done.returncode == 0, done.stderr
    assert here.read_bytes() == there.read_bytes() and here.read_bytes().startswith(b"<svg")


def subject(run: int, baseline: int | None = None, until: str = "end", **changes: object) -> RunSubject:
    unfinished = [scenes.GPU, *scenes.run(1, 1.0, scenes.experiment("naive"), until=until)]
    model = model_of(scenes.gpu_session() if until == "end" else unfinished)
    chosen = replace(model.runs[run], **changes)  # type: ignore[arg-type]
    return RunSubject(chosen, None, model.gpu, model.runs.get(baseline) if baseline else None, True)


def test_with_a_baseline_the_ratio_is_the_largest() -> None:
    model = model_of(scenes.gpu_session())
    told = summarise(ComparedRun(model, model.runs[2]), ComparedRun(model, model.runs[1]))
    both = subject(2, baseline=1)._replace(verdict=told)
    assert figure(both) == LargeNumber("5.92x", "")
    first, second, _ = (row.plain for row in headline_rows(both))
    assert "5.92x SPEEDUP OVER NAIVE" in first
    assert second == "38.4 ms ± 0.3 %, 12 repetitions"
    back = summarise(ComparedRun(model, model.runs[1]), ComparedRun(model, model.runs[2]))
    slower = subject(1, baseline=2)._replace(verdict=back)
    assert figure(slower).number == "227 ms" and "227" not in headline_rows(slower)[1].plain
    assert headline_rows(slower)[0].plain.startswith("NAIVE: 5.92x SLOWER THAN KATZ-KIDER")


async def test_presenter_mode_enlarges_the_main_figures_of_a_replay(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        for size in ((120, 40), (60, 16)):
            await pilot.resize_terminal(*size)
            await press(pilot)
            roomy = size[1] >= 20
            assert any(digits.region.area for digits in app.screen.query(Digits)) == roomy
            await pilot.press("P")
            await press(pilot)
            shown = [digits.value for digits in app.screen.query(Digits) if digits.region.area]
            assert shown == ["3.71x"]
            assert not app.screen.query_one(TelemetryStrip).region.area
            words = screen_text(app)
            assert "settings  " not in words and "not timed" not in words
            assert [digits.region.height for digits in app.screen.query(Digits) if digits.region.area] == [TALL if roomy else 3]
            await pilot.press("P")
            await press(pilot)
            assert [digits.region.height for digits in app.screen.query(Digits) if digits.region.area] == [3] * roomy
            assert app.screen.query_one(TelemetryStrip).region.area


def test_filled_digits_are_as_wide_in_ascii_and_keep_the_unit() -> None:
    rows = filled("7.88x ms")
    assert len(rows) == TALL and len({len(row) for row in rows}) == 1 and rows[-1].endswith("  ms")
