"""The Sessions screen: sessions are listed, filtered, sorted, opened, compared and deleted."""

import os
import threading
from pathlib import Path

import pytest
import scenes
from apps import Compare, Replay, playback_of, screen_of
from builders import header, write_session
from pressing import SIZES, keyed, opened, press, until
from pretending import Pretend
from textual.pilot import Pilot
from textual.widgets import Input

from fwtui.sessions.folders import SUFFIX, files_in, own_folder, shipped_folder, stem
from fwtui.sessions.library import EntryCache, LibraryEntry, entry_cells
from fwtui.sessions.reader import load
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.compare.screen import CompareScreen
from fwtui.tui.export.screens import screen_text
from fwtui.tui.sessions import screen
from fwtui.tui.sessions.screen import SessionsScreen, SessionsTable, columns


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> Path:
    """Return the user's folder in a library of four: complete, truncated, shipped and invalid."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folders = own_folder(), own_folder().with_name("shipped")
    for folder in folders:
        folder.mkdir(parents=True)
    monkeypatch.setattr("fwtui.sessions.library.shipped_folder", lambda: folders[1])
    pretend.limits("fwtui.tui.app.session_opener", PATIENCE=60)
    gpu, cpu = scenes.gpu_session(), scenes.cpu_session()
    write_session(folders[1] / f"shipped-gpu{SUFFIX}", gpu)
    write_session(folders[0] / f"20250103-cut{SUFFIX}", [_made("2025-01-03", "the one that was cut"), *gpu[1:60]], closed=False)
    write_session(folders[0] / f"20250102-cpu{SUFFIX}", [_made("2025-01-02", "tiles on a processor"), *cpu[1:]])
    (folders[0] / f"broken{SUFFIX}").write_text("no session\n")
    return folders[0]


def _made(day: str, title: str) -> events.Header:
    return header(created=f"{day}T08:00:00+00:00", title=title, machine=scenes.MACHINE)


async def settle(pilot: Pilot[None], *keys: str) -> None:
    """Press these keys, and wait until the library has been read again."""
    await press(pilot, *keys)
    await until(pilot, lambda: all(thread.name != "library" for thread in threading.enumerate()))
    await pilot.pause()


async def settled(pilot: Pilot[None], *keys: str) -> str:
    """Press keys and return the screen, once the library has been read again."""
    await settle(pilot, *keys)
    return await keyed(pilot)


def names(app: FwtuiApp) -> list[str]:
    return [entry.name for entry in screen_of(app, SessionsScreen).shown]


async def mark(pilot: Pilot[None], name: str) -> None:
    table = pilot.app.screen.query_one(SessionsTable)
    table.move_cursor(row=[entry.name for entry in screen_of(pilot.app, SessionsScreen).shown].index(name))
    await pilot.pause()


async def test_sessions_are_listed_filtered_sorted_and_opened(own: Path, replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=(160, 40)) as pilot:
        shown = await settled(pilot, "7")
        assert names(app) == ["20250103-cut", "20250102-cpu", "shipped-gpu", "broken"]
        assert "7 Sessions" in shown and "date ▾" in shown
        row = next(text for text in shown.splitlines() if " shipped-gpu" in text)
        for known in ("2025-01-01", "shipped", "Example GPU", "naive, katz-kider", "4096", "complete"):
            assert known in row
        await mark(pilot, "20250103-cut")
        shown = screen_text(app)
        assert "the one that was cut" in shown and "Example CPU 9000 · Example GPU" in shown and "your recording" in shown
        await mark(pilot, "broken")
        assert "is not a fwtui session" in screen_text(app)
        shown = await settled(pilot, "slash", *"tiled 512")
        assert names(app) == ["20250102-cpu"]
        assert "Filter" not in shown.splitlines()[-1], "/ is a letter here"
        assert isinstance(app.focused, Input)
        await settle(pilot, "enter")
        assert isinstance(app.focused, SessionsTable)
        shown = await settled(pilot, "slash", *"xyz")
        assert names(app) == [] and "None of 4 sessions has all of 'xyz'" in shown
        shown = await settled(pilot, "enter")
        assert isinstance(app.focused, Input)
        await settle(pilot, "escape")
        assert len(names(app)) == 4 and isinstance(app.screen, SessionsScreen)
        orders = {}
        for _ in range(7):
            shown = await settled(pilot, "S")
            by = next(word for word in ("name", "kernels", "n", "best", "length", "state", "date") if f"{word} ▾" in shown)
            orders[by] = names(app)
        assert orders["name"] == ["20250102-cpu", "20250103-cut", "broken", "shipped-gpu"]
        assert orders["best"][:2] == ["shipped-gpu", "20250102-cpu"]
        assert orders["n"][-1] == "broken" and orders["kernels"][-1] == "broken"
        assert orders["state"].index("broken") < orders["state"].index("shipped-gpu")
        assert orders["date"] == ["20250103-cut", "20250102-cpu", "shipped-gpu", "broken"]
        await mark(pilot, "20250102-cpu")
        await settle(pilot, "enter")
        await until(pilot, lambda: playback_of(app).recording.name == "20250102-cpu")
        shown = await settled(pilot)
        assert "RUN" in shown and "tiles on a processor" in shown
        assert load(own / f"20250102-cpu{SUFFIX}").complete


@pytest.mark.parametrize(("sizes", "words"), [((), ""), ((4096,), "4096"), ((8192, 256, 1024), "256..8192")])
def test_sizes_are_written_like_ranges_of_a_sweep(sizes: tuple[int, ...], words: str) -> None:
    assert entry_cells(LibraryEntry(Path("x"), "own", sizes=sizes))["n"] == words


def test_no_column_is_cut_by_the_edge_of_the_screen_nor_the_name_of_a_shipped_session() -> None:
    longest = max(len(stem(path)) for path in files_in(shipped_folder()) if path.name.startswith("h200-"))
    assert all(longest <= columns(width - 2)[0][1] for width in (80, 120, 160, 200))
    for width in range(58, 250):
        assert sum(wide + 2 for _, wide in columns(width)) < width and dict(columns(width))["n"] >= len("4096..131072")
    assert columns(-1) == columns(0), "a terminal of one column"


async def test_the_arrows_move_the_mark_in_late_sessions(own: Path, replay_of: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    found, find = threading.Event(), screen.find

    def late(known: EntryCache) -> list[LibraryEntry]:
        found.wait()
        return find(known)

    monkeypatch.setattr(screen, "find", late)
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        assert "searching for sessions" in await keyed(pilot, "7")
        found.set()
        await settle(pilot, "down")
        shown = await settled(pilot, "down")
        marked = screen_of(app, SessionsScreen).marked
        assert marked is not None and marked.name != "20250103-cut", "the first"
        assert "enter Replay" in shown.splitlines()[-1]


async def test_own_sessions_are_deleted_after_a_question_and_impossible_ones_are_refused(own: Path, replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    path = own / f"20250102-cpu{SUFFIX}"
    async with opened(app) as pilot:
        await settle(pilot, "7")
        await mark(pilot, "shipped-gpu")
        assert screen_of(app, SessionsScreen).check_action("delete", ()) is False
        await settle(pilot, "d")
        assert len(names(app)) == 4
        await mark(pilot, "20250102-cpu")
        shown = await keyed(pilot, "d")
        assert "Delete 20250102-cpu?" in shown and "cannot be restored" in shown
        await settle(pilot, "escape")
        assert path.exists()
        await press(pilot, "d")
        assert "20250102-cpu was deleted" in await settled(pilot, "enter")
        assert not path.exists() and names(app) == ["20250103-cut", "shipped-gpu", "broken"]
        await mark(pilot, "broken")
        os.unlink(own / f"broken{SUFFIX}")
        await press(pilot, "d")
        assert "no such file or directory" in await settled(pilot, "enter")
        assert len(names(app)) == 2
        await mark(pilot, "20250103-cut")
        await settle(pilot, "B")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and "of 20250103-cut" in screen_text(app))


async def test_an_empty_library_explains_how_to_record(own: Path, replay_of: Replay) -> None:
    for path in (*own.iterdir(), *(own.parent / "shipped").iterdir()):
        path.unlink()
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        assert "There are no sessions yet." in await settled(pilot, "7")


async def test_hostile_names_and_titles_are_only_text(own: Path, replay_of: Replay) -> None:
    told = [_made("2025-02-02", "[@click=app.quit]x[/] \x1b[31m"), *scenes.cpu_session()[1:]]
    write_session(own / f"[bold]\x1b[2J{SUFFIX}", told)
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        shown = await settled(pilot, "7")
        assert "[bold][2J" in shown and "[@click=app.quit]x[/] [31m" in shown and "\x1b" not in shown


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_picture(size: tuple[int, int], own: Path, replay_of: Replay, snap_compare: Compare) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await settle(pilot, "7")

    assert snap_compare(replay_of(scenes.gpu_session()), terminal_size=size, run_before=story)
