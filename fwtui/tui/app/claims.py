"""What a document claims and what was found here, over the session that answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from textual.app import App
from textual.content import Content

from fwtui.campaigns.reproduce import DOCUMENTS, presets
from fwtui.campaigns.reproduce.campaign import Campaign, results_of
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, RULE
from fwtui.campaigns.reproduce.preset import BEGINS, DocumentFigure, Row, RunScale
from fwtui.common.errors import Refused
from fwtui.common.tables import table
from fwtui.common.text import clean
from fwtui.sessions.library import model_of
from fwtui.stream.model import Model
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import Command, Dialog, Scrolled
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.drawn import MUTED, STRONG, line

STYLES = {HOLDS: "$text-success", REFUTED: "$text-error"}
INDENT = 8
KINDS = ((True, ", quick", "smaller sizes, within a minute"), (False, "", "all sizes, within four minutes"))


class Answered(NamedTuple):
    """A document's claims with their answers."""

    title: str
    rows: Sequence[Row]
    figures: Sequence[DocumentFigure]
    left_out: Sequence[str]


class ClaimsScreen(Dialog):
    """Every claim of one document with its answer, the document's figures beside ours, and what was left out."""

    def __init__(self, answers: Answered):
        rows: list[tuple[Content, str]] = []
        for claim, answer in answers.rows:
            style = STYLES.get(answer.verdict, MUTED)
            rows.append((line((f"{claim.id:<{INDENT}}", STRONG)), claim.words))
            words = f"document {claim.document} · here {answer.value}" if answer.value != "-" else f"document {claim.document}"
            rows.append((line(f"{'':<{INDENT}}", (f"{answer.verdict} ", style)), f"· {words}"))
            rows += [(line(" " * INDENT), words) for words in (answer.reason, answer.note) if words]
        for figure in answers.figures:
            rows += [(line(""), ""), (line((figure.title, STRONG)), ""), *((line(text), "") for text in table(figure.rows))]
        rows += [(line(""), ""), (line((f"{'rule':<{INDENT}}", MUTED)), RULE)]
        rows += [(line((f"{'left out':<10}", MUTED)), text) for text in answers.left_out]
        super().__init__(answers.title, Scrolled(rows))


def answers(name: str, model: Model) -> Answered:
    """The answers that a session gives to one document; takes seconds where a claim is about compiled code."""
    preset = presets()[name]
    # of this moment: the caller may be a thread beside the one that fills the model
    results = results_of(model.frozen(), name)
    title = f"{preset.title} · here: {model.gpu.name if model.gpu is not None else 'no GPU'}"
    return Answered(title, preset.answered(results), tuple(preset.figures(results)), results.left_out)


def reproduced(model: Model) -> tuple[str, ...]:
    """The documents whose experiments this session holds."""
    found = (m.text.removeprefix(BEGINS).split(" ")[0] for m in model.markers if m.text.startswith(BEGINS))
    return tuple(name for name in dict.fromkeys(found) if name in DOCUMENTS)


def whole(view: View) -> Model:
    """All that a view's session holds: of a recording also what is still to be played."""
    return view.model if view.playback is None else model_of(view.playback.recording.loaded)


class Documents:
    """Runs the experiments of the documents for a view and answers their claims; reports on the log line."""

    def __init__(self, app: App[None], say: Callable[..., None]):
        self._app = app
        self._say = say

    def commands(self, view: View) -> Iterator[Command]:
        """What the palette offers: documents to reproduce, and claims that this session can answer."""
        for name in DOCUMENTS if view.source is not None else ():
            for quick, words, how in KINDS:
                yield Command(f"Reproduce: {name}{words}", partial(self.reproduce, view, name, quick), f"{how}; recorded")
        for name in reproduced(view.model):
            yield Command(f"Claims: {name}", partial(self.ask, view, name), "what the document says, and this session")

    def reproduce(self, view: View, name: str, quick: bool) -> None:
        """Run a document's experiments one after the other, then show its claims with their answers."""
        assert view.source is not None
        try:
            if view.busy:
                raise Refused("something is still running; cancel it or wait for its end")
            if view.found is None:
                raise Refused("still looking for GPUs; try again in a moment")
            view.campaign = Campaign(view.source, name, RunScale(gpu=bool(view.found.gpus), quick=quick), self._say)
            view.selected = None
        except Refused as refusal:
            self._say(str(refusal), "warning")

    def tick(self, view: View) -> None:
        """Start the next run if one is due."""
        campaign = view.campaign
        if campaign is not None and not campaign.tick():
            view.campaign = None
            campaign.close()
            if not campaign.cancelled:
                self.ask(view, campaign.name)

    def ask(self, view: View, name: str) -> None:
        """Answer a document's claims, and show the answers."""
        self._say(f"answering the claims of {name}")
        failed = f"the claims of {name} could not be answered"
        in_background(  # some claims are about code that is compiled for it
            self._app,
            lambda: answers(name, whole(view)),
            self._show,
            "claims",
            lambda error: self._say(f"{failed}: {clean(str(error))}", "error"),
        )

    def _show(self, answered: Answered) -> None:
        self._say("")
        self._app.push_screen(ClaimsScreen(answered))
