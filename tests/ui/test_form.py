"""The form: it offers the fields of an experiment and the options of the kernels, including user kernels."""

import re
from pathlib import Path

import pytest
import scenes
from apps import Replay, screen_of
from fake_live import FakeLive
from pressing import keyed, opened, press, until
from textual.widgets import Button, Input, OptionList, Select, Static

from fwtui.commands.new import python
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, changed, kernel_named, settle
from fwtui.experiment.fields import FIELDS
from fwtui.machine import trust
from fwtui.machine.device_choice import settle_here
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.dialogs import ChoiceScreen
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.widgets.draft import MAIN, OPTION, OWN, ExperimentDraft
from fwtui.tui.widgets.form import ExperimentForm
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel


def draft(kernel: str = "katz-kider", gpu: bool = True, **changes: object) -> ExperimentDraft:
    def simulated(chosen: Kernel, device: str) -> bool:
        return chosen.backend == "cuda" and (not gpu or device == "simulator")

    def settled(experiment: Experiment) -> Experiment:
        return settle(experiment, simulated(registry()[experiment.kernel], experiment.device))

    return ExperimentDraft(Experiment(kernel=kernel, **changes), simulated, settled)  # type: ignore[arg-type]


def test_every_field_and_every_option_is_a_row_once() -> None:
    rows = [row.key for row in draft().rows()]
    options = {OPTION + option.name for kernel in registry().values() for option in kernel.options}
    assert set(rows) == {field.name for field in FIELDS} - {"file"} | options, "a file is named where the vertices are"
    assert len(rows) == len(set(rows))
    assert [row.key for row in draft().rows() if not row.more] == list(MAIN)


def test_the_row_of_the_graph_takes_a_size_or_a_file() -> None:
    form = draft(n=300)
    form.set("n", "/tmp/roads.gr.gz")
    assert form.text("n") == "/tmp/roads.gr.gz" and form.experiment().file == "/tmp/roads.gr.gz"
    form.set("n", "64")
    assert form.text("n") == "64" and (form.experiment().n, form.experiment().file) == (64, "")
    form.set("n", "1.5")
    assert form.errors() == {"n": "n '1.5' is not an integer; pass 1 to 65536"}
    form.set("n", "300000")
    assert form.errors() == {"n": "n 300000 is outside 1 to 65536; pass a value in this range"}
    assert "1 to 65536" in next(row.help for row in form.rows() if row.key == "n")
    form.set("n", "roads.doc")
    assert "ends in none of .gr" in form.errors()["n"]


def test_an_error_without_a_row_stays_at_the_row_changed_last() -> None:
    def settled(experiment: Experiment) -> Experiment:
        if experiment.n > 100:
            raise Refused(f"n {experiment.n} does not fit")
        return settle(experiment)

    form = ExperimentDraft(Experiment(kernel="serial", n=10), lambda kernel, device: False, settled)
    form.set("n", "101")
    form.set("density", "0.1")
    assert form.errors() == {"density": "n 101 does not fit"}, "it is said of the row that was changed last"
    form.set("seed", "4")
    assert form.errors() == {"density": "n 101 does not fit"}, "and does not wander"


def test_more_lists_the_changed_rows() -> None:
    form = draft("tiled-cpu")
    assert not any(row.changed for row in form.rows() if row.more)
    form.set(OPTION + "cores", "0")
    form.set("seed", "9")
    assert {row.key for row in form.rows() if row.more and row.changed} == {OPTION + "cores", "seed"}
    (cores,) = (row for row in form.rows() if row.key == OPTION + "cores")
    assert cores.names == {"0": "one", "1": "all"}


@pytest.mark.parametrize("kernel", list(registry()))
@pytest.mark.parametrize("gpu", [True, False])
def test_the_initial_form_can_run(kernel: str, gpu: bool) -> None:
    said = draft(kernel, gpu, n=16).experiment()
    assert said.kernel == kernel and said.n == 16
    dtypes = registry()[kernel].dtypes
    simulated = registry()[kernel].backend == "cuda" and not gpu
    usual = Experiment(kernel=kernel, n=16, dtype="float32" if "float32" in dtypes else dtypes[0])
    assert said == changed(settle(usual, simulated))
    assert not simulated or said.tile in (*registry()[kernel].simulator_tiles, 0)


def test_the_form_returns_the_given_experiment() -> None:
    given = settle(
        Experiment(
            kernel="katz-kider", n=777, density=0.25, low=-2, high=5.5, real=True, connected=True, exact=True, seed=99, tile=16,
            options={"threads": 64}, launch="eager", memory="pinned", repeats=3, budget=1.5, verify="off", device="0",
        )
    )  # fmt: skip
    form = draft()
    form.take(given)
    assert form.experiment() == changed(given)


def test_choices_follow_the_kernel_and_earlier_values_return() -> None:
    form = draft("katz-kider")
    form.set("tile", "8")
    form.set(OPTION + "threads", "64")
    form.set("kernel", "tiled-cpu")
    assert form.text("tile") == "64"  # 8 is not offered
    form.set("kernel", "serial")
    assert [row.choices for row in form.rows() if row.key == "tile"] == [()]
    assert form.experiment().tile == 0
    form.set("kernel", "katz-kider")
    assert form.text("tile") == "8" and form.experiment().options == {"threads": 64}


@pytest.mark.parametrize(
    ("key", "text", "part"),
    [
        ("density", "1.5", "outside 0 to 1"),
        ("weights", "5..1", "are in descending order"),
        ("budget", "nan", "outside"),
        ("device", "third", "neither auto"),
    ],
)
def test_a_mistake_is_a_sentence_under_its_row(key: str, text: str, part: str) -> None:
    form = draft()
    form.set(key, text)
    assert list(form.errors()) == [key]
    assert part in form.errors()[key]
    with pytest.raises(Refused, match=re.escape(form.errors()[key])):
        form.experiment()


async def test_the_form_shows_what_the_kernel_offers_and_explains_what_is_chosen(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        screen = screen_of(dashboard, RunScreen)
        tile = screen.query_one("#field-tile", Select)
        assert tile.value == "64" and not screen.query("#row-option-threads")
        screen.query_one("#field-kernel", Select).value = "katz-kider"
        await pilot.pause()
        assert tile.value in ("4", "8") and not screen.query("#row-option-threads")
        form, synced = screen.query_one(ExperimentForm), list[bool]()
        sync = form.sync
        form.sync = lambda *errors: (synced.append(True), sync(*errors))[1]  # type: ignore[method-assign]
        for _ in range(3):
            form.show_rest(True)  # the second and third time its rows are there, and not mounted yet
        await press(pilot)
        late = [row for row in screen.draft.rows() if row.more and row.shown]
        assert len(synced) < 2 * len(late), "they are waited for once, and not once each"
        threads = screen.query_one("#row-option-threads")
        assert threads.display and screen.query_one("#row-seed").display
        screen.query_one("#field-kernel", Select).value = "serial"
        await pilot.pause()
        assert tile.disabled and not threads.display
        screen.query_one("#more", Button).press()
        await pilot.pause()
        assert not screen.query_one("#row-seed").region
        tiled, serial = (kernel_named(name).summary[:20] for name in ("tiled-cpu", "serial"))
        screen.choose("tiled-cpu")
        assert tiled in await keyed(pilot, "escape")
        screen.choose("serial")
        shown = await keyed(pilot)
        assert serial in shown and tiled not in shown
        screen.query_one("#field-density", Input).focus()
        await pilot.pause()
        assert "edge probability" in screen_text(dashboard)
        screen.draft.set("seed", "many")
        screen.query_one(ExperimentForm).sync()
        shown = await keyed(pilot)
        assert "Seed" in shown and "seed 'many' is not an integer" in shown and "▾ Less" in shown


async def test_a_mistake_starts_nothing_and_letters_in_a_field_are_no_commands(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        field = dashboard.screen.query_one("#field-n", Input)
        field.focus()
        await pilot.pause()
        rows = [row.region for row in dashboard.screen.query(".row")]
        for typed, said in (("300000", "n 300000 is outside 1 to 65536"), ("512", "vertices of a random graph")):
            field.value = typed
            await press(pilot)
            words = " ".join(str(dashboard.screen.query_one("#about", Static).content).split())
            assert said in words and [row.region for row in dashboard.screen.query(".row")] == rows
            assert dashboard.screen.query_one("#row-n").has_class("wrong") == (typed == "300000")
        field = dashboard.screen.query_one("#field-density", Input)
        field.value = "7"
        dashboard.screen.set_focus(None)
        await pilot.pause()
        shown = await keyed(pilot, "r")
        assert shown.count("density 7 is outside 0 to 1") >= 2  # under the field and on the log line
        assert live.started == []
        field.value = "30%"
        await pilot.pause()
        assert "is outside" not in screen_text(dashboard)
        await pilot.press("r")
        assert live.started[0].density == pytest.approx(0.3)
        field = dashboard.screen.query_one("#field-n", Input)
        field.focus()
        await pilot.press("end", "backspace", "backspace", "backspace", "6", "4", "r", "q")
        assert field.value == "64rq" and len(live.started) == 1 and dashboard.is_running
        live.drain()
        await pilot.press("backspace", "backspace", "ctrl+r")
        assert live.started[1].n == 64


def test_auto_leaves_other_fields_open_and_shows_its_choice() -> None:
    draft = ExperimentDraft(Experiment(kernel="auto", n=300), lambda kernel, device: False, lambda e: settle_here(e))
    rows = {row.key: row for row in draft.rows()}
    assert "auto" in (rows["kernel"].choices or ()) and rows["tile"].choices == () and rows["launch"].text == "auto"
    assert draft.errors() == {}
    picked = draft.experiment()
    assert picked.kernel in registry() and picked.auto and picked.tile in registry()[picked.kernel].tiles
    draft.set("kernel", "serial")
    assert draft.experiment().kernel == "serial" and not draft.experiment().auto


async def test_a_user_kernel_is_chosen_in_the_form_once_its_folder_is_trusted(
    dashboard: FwtuiApp, live: FakeLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hw").mkdir()
    monkeypatch.chdir(tmp_path / "hw")
    (tmp_path / "hw" / "mine.py").write_text(python("serial", "mine"))
    (tmp_path / "hw" / "broken.py").write_text("def plan(:\n")

    async def named(file: str) -> None:
        await until(pilot, lambda: bool(dashboard.screen.query("PickFile #path")))
        dashboard.screen.query_one(Input).value = str(tmp_path / "hw" / file)
        dashboard.screen.query_one(Input).focus()
        await pilot.press("enter")

    async def asked(*keys: str) -> None:
        await until(pilot, lambda: type(dashboard.screen) is ChoiceScreen and bool(dashboard.screen.query(OptionList)))
        assert "can do anything that Python can do" in screen_text(dashboard)
        await press(pilot, *keys)

    async with dashboard.run_test(size=(120, 40)) as pilot:
        assert dashboard.view is not None
        select = dashboard.screen.query_one("#field-kernel", Select)
        select.value = OWN
        await until(pilot, lambda: bool(dashboard.screen.query("PickFile OptionList")))
        assert dashboard.screen.query_one(OptionList).option_count == 2, "those of the current folder"
        await named("mine.py")
        await asked("enter")  # the first answer is no
        assert not trust.is_trusted(tmp_path / "hw" / "mine.py") and select.value == "tiled-cpu"
        select.value = OWN
        await named("broken.py")
        await asked("down", "enter")
        await until(pilot, lambda: "broken.py:1:10: SyntaxError: invalid syntax: def plan(:" in screen_text(dashboard))
        select.value = OWN
        await named("mine.py")
        await until(pilot, lambda: select.value == "mine")
        assert dashboard.view.own_files == (str(tmp_path / "hw" / "mine.py"),)
        await pilot.press("escape", "ctrl+r")
        assert live.started[0].kernel == "mine" and live.started[0].code
        (tmp_path / "hw" / "yours.py").write_text(python("serial", "yours"))
        live.drain()
        await pilot.press("2")
        kernels = dashboard.screen.query_one("#field-kernel", Input)
        kernels.value = f"mine,{tmp_path / 'hw' / 'yours.py'}"
        kernels.focus()
        await pilot.press("enter")
        await until(pilot, lambda: kernels.value == "mine,yours" and "sweeping" in screen_text(dashboard))


async def test_a_recorded_source_is_shown_as_text(replay_of: Replay) -> None:
    told = scenes.run(1, 1.0, Experiment(kernel="mine", code="0123456789abcdef", n=512), title="mine", backend="cpu")
    lines = ("def plan(shape, stepwise):", "    [bold red]yield[/] \x1b[31m")
    source = events.Source(t=1.1, run=1, file="mine.py", first=1, lines=lines)
    app = replay_of([scenes.header(), told[0], source, *told[1:]])
    async with opened(app, "4", "s") as pilot:
        shown = screen_text(app)
        assert "Source of mine, as recorded with run 1" in shown and "    2     [bold red]yield[/] [31m" in shown
        await press(pilot, "s", "1")
        assert "mine" in screen_text(app)
