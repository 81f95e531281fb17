"""Settings on the screen: themes, plain characters, other keys; and pictures that are the same everywhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
import textual
from apps import dashboard_of, own_classes, view_of
from fake_live import FakeLive
from pressing import keyed, opened, press, until
from rich.cells import cell_len
from textual.widget import Widget

from fwtui.common.errors import Refused
from fwtui.machine.settings import KEYMAP, Settings, Value
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.ascii_only import plain
from fwtui.tui.app.picture import screen_text
from fwtui.tui.charts.figure import MARKERS
from fwtui.tui.frame.look import THEMES, Appearance, look_of, screens
from fwtui.tui.frame.places import place_names

ROOT = Path(__file__).resolve().parents[2]


def said(**values: str) -> Settings:
    return Settings(Path(), {name.replace("__", "."): Value(text, "file", "config.toml") for name, text in values.items()})


def keymapped(keymap: dict[str, str]) -> Appearance:
    return look_of(Settings(Path(), {KEYMAP + name: Value(keys, "file", "config.toml") for name, keys in keymap.items()}))


async def test_ascii_draws_nothing_else(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    app.plain = True
    async with opened(app, size=(60, 16)) as pilot:
        for size in ((60, 16), (120, 40)):
            await pilot.resize_terminal(*size)
            shown = await keyed(pilot, "question_mark")
            assert shown.isascii() and "Keys" in shown
            shown = await keyed(pilot, "escape")
            assert shown.isascii() and "ok verified" in shown and "+-0." in shown and shown.count("\n") <= size[1]
            assert "=" * 10 in shown, "the timeline's runs"
            assert size == (60, 16) or "_|" in shown, "large digits that can be read"
        for place in place_names():
            app.action_place(place)
            assert (await keyed(pilot)).isascii() and view_of(app).place == place


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("31.5 ms ± 0.0 % (20 passes)", "31.5 ms +-0.0 % (20 passes)"),
        ("1  ✓ verified · 16 rows", "1 ok verified . 16 rows"),
        ("finished: ✓ verified     │ 2", "finished: ok verified    | 2"),
        ("finished: ✓ verified, as Dijkst…", "finished: ok verified, as Dijk.."),
        ("│✓│", "|+|"),
        ("looking for sessions …", "looking for sessions.."),
        ("checksum c880…d5", "checksum c88..d5"),
        ("gaps ≤ 2 s  ", "gaps <= 2 s "),
        ("copy in 67 ms → 287 ms  ", "copy in 67 ms -> 287 ms "),
        ("🔎 kernel", ">  kernel"),
    ],
)
def test_signs_are_written_out_in_a_line_as_wide_as_before(shown: str, told: str) -> None:
    assert plain(shown) == told and len(told) == cell_len(shown)


def test_a_character_keeps_its_cells_and_bars_and_borders_are_told_apart() -> None:
    for shown in ("─│┌┼╭━┃╸", "⠀⠁⣿", "±…²³µ°×→▶", "漢字é\u00a0ﬁ", "plain"):
        assert plain(shown).isascii() and cell_len(plain(shown)) == cell_len(shown)
    assert plain("━━╸──") == "==>--" and plain("│┌─┐└╯") == "|+-+++" and plain("·▒█") == ".:#"
    for series in (MARKERS, "▁▂▃▄▅▆▇█"):
        assert len(set(plain(series))) == len(series)


def test_every_character_that_screens_use_has_one_in_ascii() -> None:
    """A question mark is what is unknown; only a kernel's sign is one on purpose."""
    there = Path(textual.__file__).parent
    files = [there / f"{name}.py" for name in ("command", "scrollbar", "_border", "keys")]
    files += [there / "widgets" / f"_{name}.py" for name in ("footer", "input", "select", "option_list", "data_table", "digits")]
    files += [
        path for path in (ROOT / "fwtui").rglob("*.py") if path.name not in ("places.py", "text.py")
    ]  # keys as a terminal sends them; what is never shown
    used: set[str] = set()
    for path in files:
        strings = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
        used.update(character for text in strings if isinstance(text, str) for character in text if character.isprintable())
    assert len(used) > 200 and sorted(character for character in used - {"?", "◩"} if "?" in plain(character)) == []


async def test_the_theme_and_the_keys_that_were_asked_for(live: FakeLive) -> None:
    app = dashboard_of(live, look=look_of(said(theme="ansi-dark", keymap__run="f5,ctrl+x", keymap__help="ctrl+y")))
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


async def test_a_binding_that_shares_its_key_keeps_it(live: FakeLive, tmp_path: Path) -> None:
    look = keymapped({"quit": "f9"})
    assert look.keymap == {"quit": "f9", "close": "q"}
    app = dashboard_of(live, look=look)
    session = scenes.write(tmp_path / "one.fwt.jsonl", scenes.cpu_session())
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
    """Of all letters, by the titles of what they do; keys without a letter have the meaning of their sign."""
    meanings: dict[str, set[str]] = {}
    for row in (row for rows in screens().values() for row in rows if row.successor is None):
        for key in row.key.split(","):
            if len(key) == 1 and key.isalpha() and row.description != "Close":  # closes what it has opened
                meanings.setdefault(key, set()).add(row.description)
    alike = {
        "q": {"Quit", "Back", "Give up"},
        "r": {"Run", "Sweep", "Run here", "r"},
        "y": {"Save", "End"},
    }
    wrong = {key: titles for key, titles in meanings.items() if len(titles) > 1 and not titles <= alike.get(key, set())}
    assert not wrong
    assert [meanings[key] for key in "gvxt"] == [{"Race"}, {"View"}, {"Cursor"}, {"Course"}]


def test_keys_that_have_moved_can_be_had_where_they_were() -> None:
    """For one version, by a setting."""
    look = look_of(said(former_keys="yes"))
    assert look_of(said()).keymap == {}
    assert look.keymap["telemetry.gpu"] == "g" and look.keymap["learn.verify"] == "v" and look.keymap["climb.other"] == "t"
    assert look.keymap["race.faster"] == "plus" and look.keymap["sessions.compare"] == "x"
    closed = keymapped({"help.close": "f1", "climb.close": "x", "run": "f5"})
    assert closed.keymap["run"] == "f5", "keys that closed dialogs in earlier versions may stay"


def test_each_name_that_styles_go_by_is_that_of_one_widget() -> None:
    """Textual passes over a selector that names none: a renamed widget would lose its styles without a word."""
    ours = [kind for kind in own_classes() if issubclass(kind, Widget)]
    found = [Widget]
    for kind in found:
        found += kind.__subclasses__()
    names = [kind.__name__ for kind in ours]
    assert len(names) > 50 and len(set(names)) == len(names)
    selectors = [part for kind in ours for part in re.findall(r"([^{}]+)\{", vars(kind).get("DEFAULT_CSS", ""))]
    named = {name for part in selectors for name in re.findall(r"(?<![\w.#:$-])[A-Z]\w+", part)}
    assert len(named) > 50 and named <= {kind.__name__ for kind in found}


def test_a_look_that_cannot_be() -> None:
    for settings, words in (
        (said(theme="pink"), "no theme 'pink'"),
        (said(keymap__fly="x"), "no binding 'fly'"),
        (said(keymap__run="f99"), "'f99' is not a key"),
        (said(keymap__log="question_mark"), "is help on"),
    ):
        with pytest.raises(Refused, match=words):
            look_of(settings)


def drawn(out: Path, **environment: str) -> bytes:
    golden = ROOT / "tests" / "data" / "golden-v1.fwt.jsonl"
    command = [sys.executable, "-P", "-m", "fwtui", "render", str(golden), "-o", str(out), "--size", "90x24"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TEXTUAL", "FWTUI", "NO_COLOR", "COLUMNS"))}
    done = subprocess.run(command, env={**kept, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def test_a_picture_is_the_same_whatever_the_machine_says(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('theme = "nord"\ncharset = "ascii"\n')
    here = drawn(tmp_path / "a.svg")
    there = drawn(
        tmp_path / "b.svg",
        NO_COLOR="1", TERM="dumb", LANG="C", LC_ALL="C", TZ="Asia/Tokyo", COLUMNS="20", LINES="5", COLORTERM="",
        TEXTUAL_THEME="dracula", TEXTUAL_FILTERS="dim", TEXTUAL_COLOR_SYSTEM="standard", TEXTUAL_DIM_FACTOR="10",
        TEXTUAL_PRESS="q", FWTUI_THEME="gruvbox", FWTUI_CONFIG=str(tmp_path / "config.toml"), PYTHONHASHSEED="7",
    )  # fmt: skip
    assert here == there and here.startswith(b"<svg")
