"""The ladder screen: recorded runs or runs of this machine, rung by rung, and the actions of each rung."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult

from fwtui.analysis.ladder import Rung, baseline
from fwtui.common import units
from fwtui.experiment.experiment import GENERATED, Experiment
from fwtui.learn.placeholders import large_number
from fwtui.tui.actions import look
from fwtui.tui.frame.dialogs import DefinitionList, Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.ladder_data import local_ladder
from fwtui.tui.frame.loaded_recording import SessionWanted, named
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.ladder_chart import Ladder, LadderChart, LadderSubject, RecordedLadder
from fwtui.tui.widgets.text_panel import STRONG, line
from fwtui_kernels import registry

AROUND = 4  # rows of the screen around chart and text
FLAT = 20  # rows of the screen below which there are only the chart and the keys
N_HERE, N_SIMULATED = 1024, 16  # vertices of a run here (about a second for any kernel) and in the simulator
OFFERED = {"enter": ("Enter", "Open"), "r": (None, "Run"), "space": ("Space", "Play")}  # keys of a rung: as shown, and labels


class RungAction(NamedTuple):
    """The description of a key at a rung, and the answer that it closes the screen with; an empty answer does nothing."""

    text: str
    answer: str = ""


RungActions = Callable[[Rung], Mapping[str, RungAction]]


def experiment_here(ladder: Ladder | None, kernel: str, simulated: bool = False) -> Experiment:
    """Return a run of the kernel on the graph of this machine's ladder, or on a default graph if that is missing or a file."""
    graph = ladder.rungs[0].run.experiment if ladder is not None else Experiment(n=N_HERE)
    fields = {name: getattr(graph, name) for name in GENERATED} if not graph.file else {"n": N_HERE}
    n = N_SIMULATED if simulated else min(fields["n"], registry()[kernel].max_n)
    return Experiment(**{**fields, "kernel": kernel, "n": n})


def offers(view: View, rung: Rung) -> Mapping[str, RungAction]:
    """Return the actions of a rung, by key."""
    if view.ladder_data is None:
        return {"enter": RungAction(f"show run {rung.run.id}", f"show {rung.run.id}")}
    return offers_here(view.ladder_data.recorded, rung, local_ladder(view), view.has_gpu)


def take(frame: Frame, answer: str) -> None:
    """Perform an action: open the course, replay the recording, show the run, or run the kernel here."""
    view, (what, _, which) = frame.view, answer.partition(" ")
    match what:
        case "lesson":
            view.lesson = which
        case "replay":
            frame.post_message(SessionWanted(Path(which)))
            return
        case "show":
            view.selected = int(which)
        case _:
            view.requested = experiment_here(local_ladder(view), which, what == "simulate")
    frame.post_message(TopBar.Chosen("learn" if what == "lesson" else "run"))


def offers_here(recorded: RecordedLadder, rung: Rung, local: Ladder | None, gpu: bool) -> dict[str, RungAction]:
    """Return the actions of a rung in a live session: its lesson, a run here, and the recording."""
    kernel = registry().get(rung.run.experiment.kernel)
    if kernel is None:
        return {"enter": RungAction("this version lacks this kernel")}
    run = RungAction(f"run it here, n {experiment_here(local, kernel.id).n}", f"run {kernel.id}")
    if kernel.backend == "cuda" and not gpu:
        run = RungAction(f"no GPU found: run it in the simulator, n {N_SIMULATED}, without times", f"simulate {kernel.id}")
    name, title = recorded.steps.get(kernel.id, ("", ""))
    lesson = RungAction(f"the course: {title}", f"lesson {name}") if name else RungAction("not in the course")
    actions = {"enter": lesson, "r": run}
    if recorded.session is not None:
        actions["space"] = RungAction(f"replay {named(recorded.session)}", f"replay {recorded.session}")
    return actions


class LadderScreen(Dialog):
    """The ladder on the whole screen, with a description and the keys of the marked rung."""

    DEFAULT_CSS = """
    LadderScreen > #box { width: 100%; max-width: 100%; height: 100%; }
    LadderScreen LadderChart { height: 1fr; }
    """
    BINDINGS: ClassVar = [
        look("up", "walk(1)", "Up", "a rung up", id="climb.up"),
        look("down", "walk(-1)", "Down", "a rung down", id="climb.down"),
        look("v", "other", "View", "the recorded ladder, or the ladder of this machine", id="climb.other"),
        *(
            look(
                key,
                f"take('{key}')",
                title,
                "the action described at this rung",
                id=f"climb.{key}",
                key_display=shown,
                deliberate=True,
            )
            for key, (shown, title) in OFFERED.items()
        ),
    ]

    def __init__(self, ladders: Sequence[Ladder], offers: RungActions):
        other = " · {key[climb.other]}: recorded or this machine" if len(ladders) > 1 else ""
        super().__init__("The ladder", hint=f"arrows: rung by rung{other} · {{key[dialog.close]}}: leave")
        self._ladders = tuple(ladders)
        self._offers = offers
        self.marked = 0

    def body(self) -> ComposeResult:
        yield LadderChart(None)
        yield DefinitionList(())

    def on_mount(self) -> None:
        self.show()

    on_resize = on_mount

    @property
    def rung(self) -> Rung:
        return self._ladders[0].rungs[self.marked]

    def show(self) -> None:
        run, kernel = self.rung.run, registry().get(self.rung.run.experiment.kernel)
        done = f"{units.duration(run.seconds)}, {large_number(run.rate or 0.0)} relaxations a second"
        base = baseline([rung.run for rung in self._ladders[0].rungs])
        first = f", {units.gain(self.rung.times)} speedup over {base.title}" if run is not base else ""
        height, text = self.app.size.height, self.query_one(DefinitionList)
        rows = [(line((f"{run.title}  ", STRONG)), kernel.summary if kernel is not None else ""), (line(""), f"{done}{first}")]
        offers, flat = self._offers(self.rung), height < FLAT
        offered = {self.key_of(f"climb.{key}"): offer.text for key, offer in offers.items()}
        keys = [(line((f"{key:<6}", "$text-primary")), action) for key, action in offered.items()]
        if flat:
            keys = [(line(""), " · ".join(f"{key} {action}" for key, action in offered.items()))]
        self.query_one("#title").display = not flat
        text.show((*(() if flat else rows), *keys))
        around = AROUND - flat + len(text.lines)
        self.query_one(LadderChart).show(LadderSubject(self._ladders[0], height - around, self.marked))

    def action_walk(self, direction: int) -> None:
        self.marked = min(max(self.marked + direction, 0), len(self._ladders[0].rungs) - 1)
        self.show()

    def action_other(self) -> None:
        """Switch between the recorded ladder and the ladder of this machine."""
        self._ladders = (*self._ladders[1:], self._ladders[0])
        self.marked = 0
        self.show()

    def action_take(self, key: str) -> None:
        offer = self._offers(self.rung).get(key)
        if offer is not None and offer.answer:
            self.dismiss(offer.answer)
