"""Dialogs of the dashboard: help, log, form, command palette, and files that save the screen."""

from pathlib import Path

import pytest
import scenes
from apps import Replay, screen_of
from builders import model_of, write_session
from fake_live import FakeLive
from pressing import NARROW, WIDE, go, offered, opened, press, proceed, until
from textual.command import CommandPalette
from textual.events import Key
from textual.widgets import Input

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.actions import Action
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame import saving
from fwtui.tui.frame.dialogs import MAX_ENTRIES, DefinitionList, FormScreen, HelpScreen, PromptScreen, ScrollableText, log_rows
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.frame.saving import FORMS, savable
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.run.session_screen import ReplayScreen


async def test_help_lists_every_binding_and_term(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, size=(120, 240)) as pilot:
        shown = await go(pilot, "question_mark")
        assert isinstance(dashboard.screen, HelpScreen)
        bindings = [b for b in RunScreen.BINDINGS if isinstance(b, Action)]
        assert len({b.id for b in bindings}) == len(bindings) >= 10
        for binding in bindings:
            assert binding.id and binding.tooltip and f" {binding.description} " in shown
        for word, meaning in GLOSSARY:
            assert f" {word} " in shown and " ".join(meaning.split()[:4]) in shown
        await proceed(pilot, "escape")
        await pilot.resize_terminal(60, 16)
        shown = await go(pilot, "question_mark")
        assert "Main keys" in shown and "v: the glossary" in shown and "achieved occupancy" not in shown
        assert "achieved occupancy" in await go(pilot, "v")
        assert "Main keys" in await go(pilot, "v")


async def test_the_log_the_palette_and_dialogs_over_others(dashboard: FwtuiApp, live: FakeLive, tmp_path: Path) -> None:
    async with opened(dashboard) as pilot:
        await proceed(pilot, "r")
        live.emit(events.Notice(t=live.now, text="caches are warm", level="warning"))
        shown = await go(pilot)
        assert "! caches are warm" in shown
        shown = await go(pilot, "l")
        assert dashboard.screen.query(ScrollableText)
        assert "run 1 started" in shown and "run 1 finished: ✓ verified" in shown
        await go(pilot, "l")
        assert isinstance(dashboard.screen, RunScreen), "the key that opened it closes it, too"
        answers: list[str | None] = []
        dashboard.push_screen(asked := PromptScreen("What?"), answers.append)
        await proceed(pilot, "ctrl+p")
        asked.dismiss("this")
        asked.dismiss("that")
        await proceed(pilot)
        assert answers == ["this"] and isinstance(dashboard.screen, RunScreen)
        await proceed(pilot, "question_mark", "ctrl+p")
        palette = dashboard.screen
        assert isinstance(palette, CommandPalette) and "Run: start the experiment of the form" in await offered(pilot)
        palette.dismiss()
        dashboard.action_command_palette()
        await proceed(pilot, "escape")
        palette._gather_commands("a search of a closed palette is no failure")
        await proceed(pilot)
        assert isinstance(dashboard.screen, RunScreen)
        (broken := tmp_path / "broken.fwt.jsonl").write_text("nothing\n")
        dashboard.open(broken)
        await until(pilot, lambda: "is not a fwtui session" in screen_text(dashboard))
        await press(pilot, "ctrl+p", "r", "escape")
        assert isinstance(dashboard.screen, RunScreen)


def test_a_long_log_shows_its_end() -> None:
    rows = log_rows([LogEntry(float(number), f"notice {number}") for number in range(MAX_ENTRIES + 5)])
    assert "5 earlier entries" in rows[0][0].plain and (rows[1][1], rows[-1][1]) == ("notice 5", f"notice {MAX_ENTRIES + 4}")


async def test_a_dialog_answers_once_however_many_keys_come(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=WIDE) as pilot:
        await proceed(pilot, "right_square_bracket", "slash")
        assert isinstance(app.screen, PromptScreen)
        app.screen.query_one(Input).value = "katz"
        for key in ("enter", "enter", "enter", "right_square_bracket", "slash"):
            app.post_message(Key(key, None))
        await proceed(pilot)
        assert app.is_running and isinstance(app.screen, ReplayScreen) and len(app.screen_stack) == 1
        assert app.view is not None and app.view.model.current == 2, "the keys after it reach no other screen"
        await proceed(pilot, "right_square_bracket")
        assert app.view.model.current == 3, "later ones do"


async def test_the_form_opens_over_a_narrow_screen_and_enter_runs_it(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with dashboard.run_test(size=NARROW) as pilot:
        assert " tiled-cpu · n 512 · density 0.3 · tile 64 · float32 · eager   e edit" in await go(pilot)
        await proceed(pilot, "e")
        assert isinstance(dashboard.screen, FormScreen)
        field = dashboard.screen.query_one("#field-n", Input)
        field.focus()
        field.value = "9999999"
        shown = await go(pilot, "enter")
        assert isinstance(dashboard.screen, FormScreen) and "outside" in shown
        field.value = "64"
        shown = await go(pilot, "enter")
        assert isinstance(dashboard.screen, RunScreen)
        assert live.started[0].n == 64
        assert "n 64" in shown


async def test_the_palette_has_keys_kernels_sessions_and_the_limit(dashboard: FwtuiApp, live: FakeLive, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "fwtui" / "sessions"
    folder.mkdir(parents=True)
    write_session(folder / "one-two.fwt.jsonl", scenes.cpu_session())
    folder.with_name("kept").mkdir()
    for number in range(8):
        write_session(folder.with_name("kept") / f"kept-{number}.fwt.jsonl", scenes.cpu_session())
    async with opened(dashboard) as pilot:
        screen = screen_of(dashboard, RunScreen)
        words = [command.title for command in (*screen.commands(), *dashboard.commands())]
        assert "Kernel: katz-kider" in words and "Replay: one-two" in words
        assert [w for w in words if "kept-" in w] == [f"Replay: kept-{number}" for number in (7, 6, 5, 4, 3)], "the latest"
        assert any(w.startswith("Run: ") for w in words)
        assert len(set(words)) == len(words), "a key with two names is one command"
        assert not any(w.startswith("Cancel: ") for w in words)
        assert savable(screen.table()) == ["screen-svg", "screen-text"], "before any run only the screen"
        assert "Save the screen as text" in words and "Save the table as Markdown" not in words
        await proceed(pilot, "ctrl+p")
        await pilot.press(*"kernel: serial", "enter")
        await until(pilot, lambda: screen.draft.kernel.id == "serial")
        next(command for command in dashboard.commands() if command.title == "Replay: one-two").run()
        await until(pilot, lambda: isinstance(dashboard.screen, ReplayScreen))
        assert isinstance(dashboard.screen, ReplayScreen)
        footer = (await go(pilot)).rstrip("\n").split("\n")[-1]
        assert "q Back" in footer and "Quit" not in footer
        await proceed(pilot, "question_mark")
        keys = "\n".join(row.plain for row in dashboard.screen.query_one(DefinitionList).lines)
        assert "q         Back " in keys and "Quit" not in keys
        await proceed(pilot, "escape")
        assert "q Quit" in (await go(pilot, "q")).rstrip("\n").split("\n")[-1]
        assert isinstance(dashboard.screen, RunScreen)
        await pilot.resize_terminal(140, 40)
        screen.choose("tiled-cpu")
        await proceed(pilot, "r")
        offered = {command.title: command for command in screen.commands()}
        assert "Measure the peak rates of this GPU" not in offered, "there is none here"
        offered["Measure the peak rates of this CPU"].run()
        shown = await go(pilot)
        run = live.model.run
        assert run is not None and run.rate is not None
        assert "of peak" in shown and "of 1.00 Trelax/s: float32" in shown
        assert units.percent(run.rate / 1e12) in shown


FOUND = [  # what is searched, the beginning of the first command that is found, and the place to which it leads
    ("bandwidth", "Go to Run", "run"),
    ("memory ceiling", "Explain: shared-memory ceiling", "explain"),
    ("supernode", "Glossary: separator, supernode", "telemetry"),
]
PANELS = {"roofline": "Roofline: ", "occupancy": "Occupancy: ", "warp stall": "Warps, ", "hotspot": "Warps, "}
EXPLAINED = [(words, panel, "explain") for words, panel in PANELS.items()]


@pytest.mark.parametrize("searched", [FOUND, pytest.param(EXPLAINED, marks=pytest.mark.slow)], ids=len)
async def test_the_palette_searches_screens_help_and_glossary(dashboard: FwtuiApp, searched: list[tuple[str, str, str]]) -> None:
    async with opened(dashboard) as pilot:
        for words, first, place in searched:
            await press(pilot, "alt+5", "ctrl+p", *words)
            found = await offered(pilot)
            assert found and found[0].startswith(first), found[:4]
            await press(pilot, "enter")
            await until(pilot, lambda place=place: dashboard.view is not None and dashboard.view.place == place)
        assert searched is not FOUND or "vertices that cut a sparse graph" in await go(pilot)


def model() -> Model:
    return model_of(scenes.gpu_session())


def test_a_table_as_tsv_and_markdown() -> None:
    table = [("run", "", "how"), ("1", "± 0.3 %", "a\tb|c\nd"), ("2", "", "<b>")]
    assert saving.tsv(table) == "run\t\thow\n1\t± 0.3 %\ta b|c d\n2\t\t<b>\n"
    lines = saving.markdown(table).splitlines()
    assert lines[:2] == ["| run | ± | how |", "| --- | --- | --- |"] and len(lines) == 4
    assert "a b\\|c d" in lines[2] and "&lt;b&gt;" in lines[3]


def test_saved_files_are_new_and_a_failure_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "deep" / "er"))
    paths = [saving.write("Fwtui run/../x", ".txt", "one") for _ in range(3)]
    folder = tmp_path / "deep" / "er" / "fwtui" / "saved"
    assert len(set(paths)) == 3 and all(p.read_text() == "one" and p.parent == folder for p in paths)
    assert paths[0].name.startswith("fwtui-run-x-2")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(Refused, match=r"nothing was saved in .*file.*: "):
        saving.write("a", ".txt", "x")


async def test_each_form_is_a_file_and_text_is_copied(replay_of: Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        kept: dict[str, str] = {}
        notified: list[str] = []
        app.notify = lambda message, **how: notified.append(message)  # type: ignore[method-assign]
        for name, form in FORMS.items():
            app.copy_to_clipboard("")
            screen_of(app, Frame).save(name)
            await pilot.pause()
            (path,) = (tmp_path / "data" / "fwtui" / "saved").glob(f"fwtui-run-{name}-*{form.suffix}")
            kept[name] = path.read_text()
            assert app.clipboard == (kept[name] if form.copied else "")
            assert notified[-1].startswith(str(path)) and ("clipboard" in notified[-1]) is form.copied
        (tmp_path / "no-folder").write_text("")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no-folder"))
        screen_of(app, Frame).save("screen-text")
        await pilot.pause()
        assert "nothing was saved in" in screen_text(app)
    assert kept["screen-svg"].startswith("<svg") and "Katz-Kider" in kept["screen-svg"].replace("&#160;", " ")
    assert [row.split("\t")[1] for row in kept["table-tsv"].splitlines()] == ["kernel", "naive", "katz-kider", "katz-kider"]
    assert kept["table-markdown"].startswith("| run | kernel |") and "katz-kider" in kept["table-markdown"]


async def test_the_save_key_asks_for_the_format(replay_of: Replay, tmp_path: Path) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        before = screen_text(app)
        await press(pilot, "y")
        assert all(form.title in screen_text(app) for form in FORMS.values())
        await pilot.press(*["down"] * list(FORMS).index("screen-text"), "enter")
        await press(pilot)
        (path,) = (tmp_path / "data" / "fwtui" / "saved").iterdir()
        assert path.read_text() == before, "the dialog is not in the picture"
        await pilot.press("ctrl+p", *"save the screen as text")
        await pilot.press("enter")
        saved = path.parent
        await until(pilot, lambda: len(list(saved.iterdir())) == 2)
        (path,) = {*saved.iterdir()} - {path}
        assert "RUN 3  Katz-Kider" in path.read_text() and "Save the screen" not in path.read_text()
