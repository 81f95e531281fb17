"""Appearance: themes, other keys, reproducible pictures, and the large figures of presenter mode."""

import os
import re
import string
from pathlib import Path
from unittest.mock import patch

import pytest
import scenes
from apps import Replay, dashboard_of, own_classes, replay_at_end, screen_of, view_of
from builders import model_of, write_session
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import keyed, opened, press, proceed, settled, until
from processes import fwtui
from recorded_sessions import GOLDEN
from textual.widget import Widget
from textual.widgets import Digits

from fwtui.__main__ import main
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.run_summary import summarise
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.machine.settings import KEYMAP, Settings, Value
from fwtui.tui.actions import key_name, table
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.appearance import THEMES, Appearance, load_appearance, screens
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.run.run_panel import LargeNumber, figure, headline_rows
from fwtui.tui.widgets.large import TALL, filled
from fwtui.tui.widgets.run_text import RunSubject


def said(**values: str) -> Settings:
    return Settings(Path(), {name.replace("__", "."): Value(text, "file", "config.toml") for name, text in values.items()})


def keymapped(keymap: dict[str, str]) -> Appearance:
    return load_appearance(Settings(Path(), {KEYMAP + name: Value(keys, "file", "config.toml") for name, keys in keymap.items()}))


async def test_theme_and_keys_follow_the_settings(live: FakeLive) -> None:
    app = dashboard_of(live, look=load_appearance(said(theme="ansi-dark", keymap__run="f5,ctrl+x", keymap__help="ctrl+y")))
    async with opened(app) as pilot:
        assert app.theme == "ansi-dark" and app.theme in THEMES
        assert "f5        run the experiment" in screen_text(app) and "Run  f5" in screen_text(app)
        app.screen.set_focus(None)
        await pilot.press("r")
        assert not live.started
        await pilot.press("ctrl+x")
        assert len(live.started) == 1
        shown = await keyed(pilot, "ctrl+y")
        assert "f5 ^x" in shown and "Run" in shown
        await pilot.press("escape")


# where a key is named: in brackets, before what it does, before another key
KEYS = r"[b-jl-zB-Z?!.,;<>(){}\[\]$+]|[Ee]sc|[Ss]pace|Home|\d(?= then)"
DOES = r",? then |: (?!waits|issues|could)[a-z]| (?!relax|times)[a-z]+s\b| alone\b"
NAMED = re.compile(rf"(?<!\S)(\()?({KEYS})(?:{DOES}|(?(1)\)|(?!)))")


def rebound_everywhere() -> Appearance:
    """Return a look that binds each row of every screen to an unused key."""
    ids = {str(row.id): None for rows in screens().values() for row in rows}
    modifiers = ("", "ctrl+", "alt+", "shift+", "ctrl+alt+", "ctrl+shift+", "alt+shift+")
    keys = (f"{modifier}f{number}" for modifier in modifiers for number in range(1, 25))
    return keymapped({name: next(keys) for name in ids})


async def everything_said(app: FwtuiApp, live: FakeLive) -> list[str]:
    """Return the text of the start, and of each place and its dialogs after two runs."""
    once = ["log", "record", "mark", "go", "race", "climb", "course", "enter"]  # in the first place that has it
    async with opened(app, size=(120, 60)) as pilot:
        texts = [await settled(pilot)]
        for n in (256, 512):
            live.start(live.settled(Experiment(kernel="tiled-cpu", n=n)))
            live.drain()
        await proceed(pilot)
        for place in view_of(app).places:
            app.action_place(place.name)
            await press(pilot)
            here = screen_of(app, Frame)
            here.show_message(", ".join(["too much for a line"] * 9))
            texts.append(await keyed(pilot))
            for action in ("help", *once):
                if (action, ()) in table(type(here)) and here.check_action(action, ()):
                    once = [one for one in once if one != action]
                    await here.run_action(action)
                    texts.append(await keyed(pilot))
                    if isinstance(app.screen, Dialog):
                        app.screen.action_close()
                        await press(pilot)
    return texts


def test_names_of_keys_are_found_in_sentences() -> None:
    found = NAMED.findall("V runs it, (x) 6 then t, Esc closes this · l: all of it (esc: newest) what if: x, then the arrows")
    assert [key for _, key in found] == ["V", "x", "6", "Esc", "l", "esc", "x"]
    assert not any(NAMED.search(meaning) for _, meaning in GLOSSARY)


@pytest.mark.parametrize("replayed", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_no_screen_names_a_key_that_is_not_bound(live: FakeLive, tmp_path: Path, replayed: bool) -> None:
    look, path = rebound_everywhere(), write_session(tmp_path / "one.fwt.jsonl", scenes.gpu_session())
    app = replay_at_end(path, look=look) if replayed else dashboard_of(live, look=look)
    texts = await everything_said(app, live)
    assert len(texts) > 15
    # source lines, which begin with their number or an arrow, are not hints
    lines = (re.split(r"\.py:|(?:^|│) +(?:\d+|↪) {3,}", line)[0] for text in texts for line in text.splitlines())
    assert not [line for line in lines if NAMED.search(line)]


async def test_a_binding_that_shares_its_key_keeps_it(live: FakeLive, tmp_path: Path) -> None:
    look = keymapped({"quit": "f9"})
    assert look.keymap == {"quit": "f9", "close": "q"}
    app = dashboard_of(live, look=look)
    session = write_session(tmp_path / "one.fwt.jsonl", scenes.cpu_session())
    async with app.run_test(size=(100, 30)) as pilot:
        app.open(session)
        await until(pilot, lambda: app.view is not None and app.view.playback is not None)
        await press(pilot, "q")
        assert app.view is not None and app.view.playback is None and app.return_value is None
        app.screen.set_focus(None)
        await pilot.press("f9")
    assert app.return_code == 0


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
    for settings, words in (
        (said(theme="pink"), "no theme 'pink'"),
        (said(keymap__fly="x"), "no action 'fly'"),
        (said(keymap__help__close="f1"), "no action 'help.close'"),
        (said(keymap__run="f99"), "'f99' is not a key"),
        (said(keymap__log="question_mark"), "is help on"),
    ):
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


def test_a_single_run_has_time_spread_rate_and_share_of_peak() -> None:
    assert figure(subject(2)) == LargeNumber("38.4 ms", "")
    assert [row.plain for row in headline_rows(subject(2))] == [
        "",
        "± 0.3 %, 12 repetitions",
        "1.79 T relaxations/s · effective bandwidth 14.0 % of peak",
    ]


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


def test_unverified_numbers_are_marked_unreliable() -> None:
    wrong = subject(2, verdict=scenes.verdict("wrong", "3 cells differ"))
    assert figure(wrong) == LargeNumber("38.4 ms", "", True)
    assert "unreliable: INCORRECT 3 cells differ" in headline_rows(wrong)[1].plain


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
