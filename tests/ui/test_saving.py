"""What is shown, kept as a file: every form, where it is, and what happens where that cannot be."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from apps import screen_of
from builders import model_of
from pressing import opened, press, until
from textual.widgets import OptionList

from fwtui.analysis import report
from fwtui.common.errors import Refused
from fwtui.stream.model import Model
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame import saving
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.saving import FORMS, savable


def model() -> Model:
    return model_of(scenes.gpu_session())


def test_a_table_as_tsv_and_markdown() -> None:
    table = [("run", "", "how"), ("1", "± 0.3 %", "a\tb|c\nd"), ("2", "", "<b>")]
    assert saving.tsv(table) == "run\t\thow\n1\t± 0.3 %\ta b|c d\n2\t\t<b>\n"
    lines = saving.markdown(table).splitlines()
    assert lines[:2] == ["| run | ± | how |", "| --- | --- | --- |"] and len(lines) == 4
    assert "a b\\|c d" in lines[2] and "&lt;b&gt;" in lines[3]


def test_results_are_what_run_json_prints() -> None:
    told = model()
    whole = json.loads(saving.results_json(told))
    assert whole == [json.loads(json.dumps(report.result(told, run))) for run in told.runs.values()]
    rows = list(csv.DictReader(io.StringIO(saving.results_csv(told))))
    assert [row["kernel"] for row in rows] == ["naive", "katz-kider", "katz-kider"]
    assert float(rows[1]["seconds"]) == pytest.approx(0.0384) and rows[1]["experiment_tile"] == "32"
    assert float(rows[1]["phase_rest_seconds"]) == pytest.approx(0.9 * 0.0384 * 1.02)
    assert saving.results_json(Model()) == "[]\n" and saving.results_csv(Model()).strip() == ""


def test_every_file_is_new_and_a_full_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "deep" / "er"))
    paths = [saving.write("Fwtui run/../x", ".txt", "one") for _ in range(3)]
    folder = tmp_path / "deep" / "er" / "fwtui" / "saved"
    assert len(set(paths)) == 3 and all(p.read_text() == "one" and p.parent == folder for p in paths)
    assert paths[0].name.startswith("fwtui-run-x-2")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(Refused, match=r"nothing was saved in .*file.*: "):
        saving.write("a", ".txt", "x")


async def test_each_form_is_a_file_and_text_is_copied(
    replay_of: Callable[..., FwtuiApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert len(list(csv.reader(io.StringIO(kept["results-csv"])))) == 4 and len(json.loads(kept["results-json"])) == 3


async def test_the_key_asks_in_which_form(replay_of: Callable[..., FwtuiApp], tmp_path: Path) -> None:
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
        await until(pilot, lambda: app.screen.query(OptionList) and app.screen.query_one(OptionList).option_count == 1)
        await pilot.press("enter")
        saved = path.parent
        await until(pilot, lambda: len(list(saved.iterdir())) == 2)
        (path,) = {*saved.iterdir()} - {path}
        assert "RUN 3  Katz-Kider" in path.read_text() and "Save the screen" not in path.read_text()


async def test_the_whole_path_is_on_the_screen(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        screen_of(app, Frame).save("results-json")
        rows: list[str] = []
        for _ in range(1000):
            await pilot.pause(0.02)
            rows = [row.partition("▌")[2].strip(" …┃▆") for row in screen_text(app).splitlines() if "▌" in row]
            if any("clipboard" in row for row in rows):
                break
        (path,) = (saving.folder()).iterdir()
        assert "Saved" in rows and str(path) in "".join(rows)
        await pilot.press("question_mark")
        await pilot.pause(0.1)
        assert "Saved" not in screen_text(app) and "▏" not in screen_text(app), "it covers no dialog"


async def test_before_any_run_there_is_only_the_screen(dashboard: FwtuiApp) -> None:
    async with opened(dashboard):
        assert savable(screen_of(dashboard, Frame).model, screen_of(dashboard, Frame).table()) == ["screen-svg", "screen-text"]
        words = [command.words for command in screen_of(dashboard, Frame).commands()]
        assert "Save the screen as text" in words and "Save the table as Markdown" not in words
