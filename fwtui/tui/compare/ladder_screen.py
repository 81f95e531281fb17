"""The ladder: from recordings and this machine's own runs, and its screen, one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult

from fwtui.analysis.ladder import Rung
from fwtui.common import units
from fwtui.experiment.experiment import GENERATED, Experiment
from fwtui.learn.placeholders import large_number
from fwtui.tui.actions import look
from fwtui.tui.frame.dialogs import DefinitionList, Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.ladder_data import local_ladder
from fwtui.tui.frame.recording import SessionWanted, named
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.ladder_chart import Ladder, LadderChart, LadderSubject, RecordedLadder
from fwtui.tui.widgets.text_panel import STRONG, line
from fwtui_kernels import registry

AROUND = 4  # rows of the screen around stairs and words
FLAT = 20  # rows of the screen below which there are only the keys beside the stairs, on as few lines as they need
N_HERE, N_SIMULATED = 1024, 16  # vertices of a run here: every kernel takes about a second; of one in the simulator
OFFERED = {"enter": ("Enter", "Go on"), "r": (None, "Run"), "space": ("Space", "Play")}  # a step's keys: as shown, and titles


class RungAction(NamedTuple):
    """What a key does at a step in words, and the screen's answer; no answer if the key can do nothing."""

    words: str
    answer: str = ""


RungActions = Callable[[Rung], Mapping[str, RungAction]]


def experiment_here(climb: Ladder | None, kernel: str, simulated: bool = False) -> Experiment:
    """A step's kernel on the graph of this machine's ladder, which it then joins; without one, or of a file, on a usual graph."""
    graph = climb.rungs[0].run.experiment if climb is not None else Experiment(n=N_HERE)
    fields = {name: getattr(graph, name) for name in GENERATED} if not graph.file else {"n": N_HERE}
    n = N_SIMULATED if simulated else min(fields["n"], registry()[kernel].max_n)
    return Experiment(**{**fields, "kernel": kernel, "n": n})


def offers(view: View, rung: Rung) -> Mapping[str, RungAction]:
    """What the keys of a step do."""
    if view.climb is None:
        return {"enter": RungAction(f"show run {rung.run.id}", f"show {rung.run.id}")}
    return offers_here(view.climb.recorded, rung, local_ladder(view), view.has_gpu)


def take(frame: Frame, answer: str) -> None:
    """Do what a step offers: open the course, replay the recording, show the run, or run the kernel here."""
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
            view.wanted = experiment_here(local_ladder(view), which, what == "simulate")
    frame.post_message(TopBar.Chosen("learn" if what == "lesson" else "run"))


def offers_here(recorded: RecordedLadder, rung: Rung, climb: Ladder | None, gpu: bool) -> dict[str, RungAction]:
    """What a step of the dashboard's ladder offers: its lesson, a run of it here, and the recording."""
    kernel = registry().get(rung.run.experiment.kernel)
    if kernel is None:
        return {"enter": RungAction("this version has no such kernel")}
    run = RungAction(f"run it here, n {experiment_here(climb, kernel.id).n}", f"run {kernel.id}")
    if kernel.backend == "cuda" and not gpu:
        run = RungAction(f"no GPU is here: run it in the simulator, n {N_SIMULATED}, without times", f"simulate {kernel.id}")
    name, title = recorded.steps.get(kernel.id, ("", ""))
    lesson = RungAction(f"the course: {title}", f"lesson {name}") if name else RungAction("the course has no step about it")
    replay = (
        {"space": RungAction(f"replay {named(recorded.session)}", f"replay {recorded.session}")}
        if recorded.session is not None
        else {}
    )
    return {"enter": lesson, "r": run, **replay}


class LadderScreen(Dialog):
    """The stairs over the whole screen, with the words and the keys of the step that is marked."""

    DEFAULT_CSS = """
    LadderScreen > #box { width: 100%; max-width: 100%; height: 100%; }
    LadderScreen LadderChart { height: 1fr; }
    """
    BINDINGS: ClassVar = [
        look("up", "walk(1)", "Up", "a step up", id="climb.up"),
        look("down", "walk(-1)", "Down", "a step down", id="climb.down"),
        look("v", "other", "View", "the ladder of the recording, or of this machine", id="climb.other"),
        *(
            look(key, f"take('{key}')", title, "what the step offers", id=f"climb.{key}", key_display=shown)
            for key, (shown, title) in OFFERED.items()
        ),
    ]

    def __init__(self, climbs: Sequence[Ladder], offers: RungActions):
        other = " · {key[climb.other]}: recorded or this machine" if len(climbs) > 1 else ""
        super().__init__("The ladder", hint=f"arrows: step by step{other} · {{key[dialog.close]}}: leave")
        self._climbs = tuple(climbs)
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
        return self._climbs[0].rungs[self.marked]

    def show(self) -> None:
        run, kernel = self.rung.run, registry().get(self.rung.run.experiment.kernel)
        done = f"{units.duration(run.seconds)}, {large_number(run.rate or 0.0)} relaxations a second"
        first = f", {units.gain(self.rung.times)} speedup over the first rung" if self.marked else ""
        height, words = self.app.size.height, self.query_one(DefinitionList)
        rows = [(line((f"{run.title}  ", STRONG)), kernel.summary if kernel is not None else ""), (line(""), f"{done}{first}")]
        offers, flat = self._offers(self.rung), height < FLAT
        offered = {self.key_of(f"climb.{key}"): offer.words for key, offer in offers.items()}
        keys = [(line((f"{key:<6}", "$text-primary")), words) for key, words in offered.items()]
        if flat:
            keys = [(line(""), " · ".join(f"{key} {words}" for key, words in offered.items()))]
        self.query_one("#title").display = not flat
        words.show((*(() if flat else rows), *keys))
        around = AROUND - flat + len(words.lines)
        self.query_one(LadderChart).show(LadderSubject(self._climbs[0], height - around, self.marked))

    def action_walk(self, direction: int) -> None:
        self.marked = min(max(self.marked + direction, 0), len(self._climbs[0].rungs) - 1)
        self.show()

    def action_other(self) -> None:
        """The ladder of the recording, or that of this machine."""
        self._climbs = (*self._climbs[1:], self._climbs[0])
        self.marked = 0
        self.show()

    def action_take(self, key: str) -> None:
        offer = self._offers(self.rung).get(key)
        if offer is not None and offer.answer:
            self.dismiss(offer.answer)
