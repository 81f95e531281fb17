"""What a document claims and what was found here, over the session that answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message

from fwtui.model import Model
from fwtui.report import table
from fwtui.reproduce import MODULES, presets
from fwtui.reproduce.answers import Row, answered
from fwtui.reproduce.campaign import BEGINS
from fwtui.reproduce.claim import HOLDS, REFUTED, RULE
from fwtui.reproduce.preset import Figure
from fwtui.reproduce.runs import LEFT_OUT, Results
from fwtui.tui.commands import Command
from fwtui.tui.dialogs import Dialog, Scrolled
from fwtui.tui.drawn import MUTED, STRONG, line

STYLES = {HOLDS: "$text-success", REFUTED: "$text-error"}
INDENT = 8


class Answered(Message):
    """A document's claims have their answers."""

    def __init__(self, title: str, rows: Sequence[Row], figures: Sequence[Figure], left_out: Sequence[str]):
        super().__init__()
        self.title = title
        self.rows = rows
        self.figures = figures
        self.left_out = left_out


class ClaimsScreen(Dialog):
    """Every claim of one document with its answer, the document's figures beside ours, and what was left out."""

    def __init__(self, answers: Answered):
        super().__init__()
        self._answers = answers

    @property
    def heading(self) -> str:
        return self._answers.title

    def body(self) -> ComposeResult:
        rows: list[tuple[Content, str]] = []
        for claim, answer in self._answers.rows:
            style = STYLES.get(answer.verdict, MUTED)
            rows.append((line((f"{claim.id:<{INDENT}}", STRONG)), claim.words))
            said = f"document {claim.document} · here {answer.value}" if answer.value != "-" else f"document {claim.document}"
            rows.append((line(f"{'':<{INDENT}}", (f"{answer.verdict} ", style)), f"· {said}"))
            if answer.reason:
                rows.append((line(" " * INDENT), answer.reason))
        for figure in self._answers.figures:
            rows += [(line(""), ""), (line((figure.title, STRONG)), "")]
            rows += [(line(text), "") for text in table(figure.rows)]
        rows += [(line(""), ""), (line((f"{'rule':<{INDENT}}", MUTED)), RULE)]
        rows += [(line((f"{'left out':<10}", MUTED)), text) for text in self._answers.left_out]
        yield Scrolled(rows)


def answers(name: str, model: Model) -> Answered:
    """The answers that a session gives to one document; takes seconds where a claim is about compiled code."""
    preset = presets()[name]
    # of this moment: the caller may be a thread beside the one that fills the model
    results = Results(replace(model, runs=dict(model.runs), markers=list(model.markers)))
    where = model.gpu.name if model.gpu is not None else "no GPU"
    left_out = [m.text.removeprefix(LEFT_OUT) for m in results.model.markers if m.text.startswith(LEFT_OUT)]
    return Answered(f"{preset.title} · here: {where}", answered(preset, results), tuple(preset.figures(results)), left_out)


def reproduced(model: Model) -> tuple[str, ...]:
    """The documents whose experiments this session holds."""
    found = (m.text.removeprefix(BEGINS).split(" ")[0] for m in model.markers if m.text.startswith(BEGINS))
    return tuple(name for name in dict.fromkeys(found) if name in MODULES)


def starting(start: Callable[[str, bool], None]) -> Iterator[Command]:
    """Commands that run a document's experiments: `start(name, quick)`."""
    for name in MODULES:
        yield Command(f"Reproduce: {name}, quick", partial(start, name, True), "smaller sizes, within a minute; recorded")
        yield Command(f"Reproduce: {name}", partial(start, name, False), "all its sizes, within four minutes; recorded")
