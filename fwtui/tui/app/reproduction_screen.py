"""The papers in the dashboard: running their experiments, and a dialog that evaluates their claims over a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from textual.app import App
from textual.content import Content

from fwtui.campaigns.claims import BEGIN, HOLDS, PAPERS, REFUTED, RULE, evaluate, evidence_of, papers
from fwtui.campaigns.reproduction import Reproduction
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.sessions.library import model_of
from fwtui.stream.model import Model
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import Dialog, ScrollableText
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.text_panel import MUTED, STRONG, line

STYLES = {HOLDS: "$text-success", REFUTED: "$text-error"}
INDENT = 8
SCALES = ((True, ", quick", "smaller sizes, within a minute"), (False, "", "all sizes, within eight minutes"))
Rows = Sequence[tuple[Content, str]]


def answers(name: str, model: Model) -> tuple[str, Rows]:
    """Evaluate one paper's claims; return the title and the rows: claims, rule, skipped experiments."""
    paper, frozen = papers()[name], model.frozen()  # this may run in a thread while the model grows
    found, rows = evidence_of(frozen, paper), list[tuple[Content, str]]()
    for claim in paper.claim:
        answer = evaluate(claim, found)
        here = f" · here {answer.value}" if answer.value != "-" else ""
        verdict = line(" " * INDENT, (f"{answer.verdict} ", STYLES.get(answer.verdict, MUTED)))
        rows += [(line((f"{claim.id:<{INDENT}}", STRONG)), claim.claim), (verdict, f"· document {claim.document}{here}")]
        rows += [(line(" " * INDENT), text) for text in (answer.reason, answer.note) if text]
    rows += [(line(""), ""), (line((f"{'rule':<{INDENT}}", MUTED)), RULE)]
    return paper.heading(frozen), [*rows, *((line((f"{'skipped':<10}", MUTED)), text) for text in found.skipped())]


def whole(view: View) -> Model:
    """Return the complete model of a view's session, including the part of a recording that is still to be played."""
    return view.model if view.playback is None else model_of(view.playback.recording.session.lines)


class Documents:
    """Runs the experiments of papers for a view and evaluates their claims; reports on the log line."""

    def __init__(self, app: App[None], show_message: Callable[..., None]):
        self._app, self._show_message = app, show_message

    def commands(self, view: View) -> Iterator[Command]:
        """Yield the palette's commands: papers to reproduce, and those whose experiments the session holds."""
        for name in PAPERS if view.source is not None else ():
            for quick, text, how in SCALES:
                yield Command(f"Reproduce: {name}{text}", partial(self.reproduce, view, name, quick), f"{how}; recorded")
        held = {marker.text.removeprefix(BEGIN).split(" ")[0] for marker in view.model.markers if marker.text.startswith(BEGIN)}
        for name in (name for name in PAPERS if name in held):
            yield Command(f"Claims: {name}", partial(self.evaluate, view, name), "the paper's claims and this session's results")

    def reproduce(self, view: View, name: str, quick: bool) -> None:
        """Run a paper's experiments one after the other, then show its claims with their results."""
        assert view.source is not None
        try:
            if view.busy:
                raise Refused("a run is active; cancel it or wait until it ends")
            if view.found is None:
                raise Refused("GPU detection is not complete; try again in a few seconds")
            campaign = Reproduction(view.source, papers()[name], bool(view.found.gpus), quick, self._show_message)
            campaign.record()
            view.campaign, view.selected = campaign, None
        except Refused as refusal:
            self._show_message(str(refusal), "warning")

    def tick(self, view: View) -> None:
        """Start the next run if one is due."""
        campaign = view.campaign
        if campaign is not None and not campaign.tick():
            view.campaign = None
            campaign.close()
            if not campaign.cancelled:
                self.evaluate(view, campaign.paper.name)

    def evaluate(self, view: View, name: str) -> None:
        """Evaluate a paper's claims in a thread, and show the results."""
        self._show_message(f"evaluating the claims of {name}")

        def failed(error: Exception) -> None:
            self._show_message(f"the claims of {name} could not be evaluated: {sanitise(str(error))}", "error")

        in_background(self._app, lambda: answers(name, whole(view)), self._show, "claims", failed)

    def _show(self, found: tuple[str, Rows]) -> None:
        self._show_message("")
        self._app.push_screen(Dialog(found[0], ScrollableText(found[1])))
