"""The cue card of a lecture: the marker's text, its question, and the answer on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.content import Content
from textual.renderables.digits import Digits
from textual.widget import Widget
from textual.widgets import Static

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.recorded_source import ADDED, REMOVED, SAME, SourceExcerpt, excerpt
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.learn.questions import (
    SOURCE,
    Cue,
    GuessChoice,
    QuestionAnswer,
    answer_of,
    cue_of,
    numbered,
    parse_guess,
    pick,
    verdict,
)
from fwtui.stream.events import Marker, RunStarted, Source
from fwtui.tui.explain.warp_panel import sampled
from fwtui.tui.frame.base_screens import PlaceScreen
from fwtui.tui.frame.dialogs import PromptScreen
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.run_text import numbers_lines, parts_lines
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, justify, line

CHANGED = {ADDED: f"{STRONG} $text-success", REMOVED: "$text-error strike", SAME: ""}
END = "End of the lecture"
SPEEDUP = "speedup"  # the kind of question that a written answer about the median time answers too


class Card(NamedTuple):
    number: int  # number of the marker
    of: int
    cue: Cue
    answer: QuestionAnswer | str | None  # a text if the run gives no answer; None until the user requests it
    keys: str  # the available keys
    presented: bool = False  # at the top, legible from a distance
    roomy: bool = False  # whether there is room for large digits and empty lines
    guess: float | str | None = None  # a number, or the key of a choice
    choices: tuple[GuessChoice, ...] = ()  # of a guess, until the answer is shown
    source: SourceExcerpt | str | None = None  # lines of the run's source; a text if they were not recorded


class GuessScreen(PromptScreen):
    """A field for a guess; the panel of the question stays visible: in a presentation the field covers the card (`over_card`)."""

    def __init__(self, heading: str, choices: Sequence[GuessChoice], placeholder: str, over_card: bool):
        super().__init__(heading, "", placeholder, "Enter: show the answer · {key[dialog.close]}: cancel", max_length=20)
        self.styles.align = "center", "top" if over_card else "bottom"
        self._choices = choices

    def body(self) -> ComposeResult:
        if self._choices:
            yield Static(Content("\n").join(_listed(self._choices)), markup=False)
        yield from super().body()


class CueCard(TextPanel["Card | None"]):
    """A line above the transport; in a presentation, a card at the top, with the number of an answer in large digits."""

    DEFAULT_CSS = """
    CueCard { padding: 0 1; background: $panel; max-height: 50%; }
    CueCard.-source { max-height: 70%; }
    """

    def show(self, subject: Card | None) -> None:
        self.set_class(subject is not None and subject.source is not None, "-source")
        super().show(subject)

    def draw(self, subject: Card, width: int) -> Sequence[Content]:
        return self._presented(subject, width) if subject.presented else self._in_short(subject, width)

    def _in_short(self, card: Card, width: int) -> list[Content]:
        cue = card.cue
        rows = line(
            ("? " if cue.asks else "◆ ", f"{STRONG} $text-primary"),
            (f"{cue.title} · " if cue.title and cue.body else cue.title, STRONG),
            (cue.pointer if cue.body else "", "$text-primary"),
            (cue.body, STRONG),
            (f"  {card.number} of {card.of}", MUTED),
        ).wrap(width)
        rows += [*_source(card, width), *_answered(card, width)]
        return [*rows, line((card.keys, MUTED))] if card.keys else rows

    def _presented(self, card: Card, width: int) -> list[Content]:
        cue, gap = card.cue, [line("")] * card.roomy
        rows = line((cue.title, f"{STRONG} $text-primary")).wrap(width) if cue.title else []
        if cue.body:
            rows += [*(gap if rows else []), *(row for text in cue.lines for row in line((text, STRONG)).wrap(width))]
        if rows_of_source := _source(card, width):
            rows += [*gap, *rows_of_source]
        if card.choices:
            rows += [*gap, *_listed(card.choices)]
        if answered := _answered(card, width):
            rows += [*gap, *answered]
        number = f"{card.number} of {card.of}" if card.number <= card.of else ""
        return [*rows, *gap, justify(line((number, MUTED)), line((card.keys, MUTED)), width)]


def _listed(choices: Sequence[GuessChoice]) -> list[Content]:
    return [line((f"{number} ", "$text-primary"), choice.text) for number, choice in enumerate(choices, 1)]


def _source(card: Card, width: int) -> list[Content]:
    """Draw the source excerpt: added and removed lines in colour, and a bar for each line with PC samples."""
    if not isinstance(card.source, SourceExcerpt):
        return line((card.source, "$text-warning")).wrap(width) if card.source is not None else []
    excerpt = card.source
    changed = f"  {ADDED} new and {REMOVED} gone since run {excerpt.before}" if excerpt.before else ""
    bars = f"  {units.counted(excerpt.total, 'PC sample')}" if excerpt.total else ""
    rows = [line((excerpt.file, STRONG), (f"{changed}{bars}", MUTED))]
    indent = min((len(one.text) - len(one.text.lstrip()) for _, one in excerpt.rows if one.text.strip()), default=0)
    for mark, one in excerpt.rows:
        bar = sampled(one, excerpt.total, excerpt.most or 1) if excerpt.total else ()
        rows.append(line(*bar, (f"{one.line or '':>5} {mark} ", MUTED), (one.text[indent:], CHANGED[mark])))
    return rows


def _answered(card: Card, width: int) -> list[Content]:
    match card.answer:
        case QuestionAnswer() as answer:
            rows = parts_lines(answer, card.guess, width) if answer.parts and (card.roomy or not card.presented) else []
            if isinstance(card.guess, float) and card.cue.kind is not None and answer.number is not None:
                rows += numbers_lines(card.cue.kind, [("the guess", card.guess), ("the run", answer.number)], width)
            elif card.roomy and answer.number is not None and card.cue.kind is not None:
                rows += _large(answer.short or card.cue.kind.say(answer.number))
            near = verdict(card.cue.kind, card.guess, answer) if card.cue.kind is not None and card.guess is not None else ""
            return rows + line(
                (f"= {near} ".replace("  ", " "), f"{STRONG} $text-primary"), (answer.text, STRONG if card.presented else "")
            ).wrap(width)
        case str() as why:
            return line((why, "$text-warning")).wrap(width)
    return []


def _large(number: str) -> list[Content]:
    text = "".join(segment.text for segment in Digits(number).render(Style(bold=True)) if isinstance(segment, Segment))
    return [line((row, f"{STRONG} $text-primary")) for row in text.splitlines()]


def show_card(screen: PlaceScreen) -> None:
    """Show the marker at the recording's position, highlight its panel, and hide the widgets that show its answer."""
    roomy = not (screen.has_class("-flat") or screen.has_class("-tiny"))
    current_card, playback = card(screen.view, screen.key_of, roomy), screen.view.playback
    screen.query_one(CueCard).show(current_card)
    panel = current_card.cue.panel if current_card is not None else ""
    lit = [*screen.pointed(panel)]
    asked = current_card is not None and current_card.answer is None and current_card.cue.answered
    cues = [*([current_card.cue] if asked and current_card is not None else []), *_later_questions(screen.view)]
    kinds = [cue.kind.name if cue.kind is not None else SPEEDUP if cue.panel == "total" else "" for cue in cues]
    seen = set() if asked else {part for one in lit for part in one.walk_children(with_self=True)}
    hidden: dict[Widget, tuple[str, ...] | None] = {}
    for widget, rows in (item for kind in kinds for item in screen.giveaways(kind).items() if item[0] not in seen):
        known = hidden.get(widget, ())
        hidden[widget] = None if rows is None or known is None else (*known, *rows)
    screen.sight.veil(hidden)
    screen.sight.point(panel, lit, playback is not None and playback.presenting and (playback.over or bool(lit)))


def _later_questions(view: View) -> list[Cue]:
    """Return the questions of later cue cards about the present run; none before it has a time, or away from a cue card."""
    playback, run = view.playback, view.run if view.marker is not None else None
    if playback is None or run is None or run.seconds is None or not playback.recording.marks.directed:
        return []
    rows = takewhile(lambda row: row.kind is not RunStarted, playback.player.lines[playback.player.index :])
    return [cue for row in rows if row.kind is Marker and isinstance(row.event, Marker) and (cue := cue_of(row.event)).answered]


def card(view: View, key_of: Callable[[str], str], roomy: bool) -> Card | None:
    """Return the card at the view's position in its recording; None if there is no marker.

    `key_of` returns the displayed key of an action; `roomy` is True for a large terminal.
    """
    current_card = _card(view, key_of, roomy)
    if current_card is None:
        return None
    cue, guess = current_card.cue, view.guesses.get(current_card.number)
    choices = _choices(view, cue) if current_card.presented and current_card.answer is None else ()
    return current_card._replace(guess=guess, choices=choices, source=_excerpt(view, cue))


def _choices(view: View, cue: Cue) -> tuple[GuessChoice, ...]:
    """Return the choices of a question; none if the run lacks them, which its answer will say."""
    if cue.kind is None or view.run is None:
        return ()
    with suppress(Refused):
        return cue.kind.choices(ComparedRun(view.model, view.run))
    return ()


def _card(view: View, key_of: Callable[[str], str], roomy: bool) -> Card | None:
    """Return the card without guess and source."""
    if view.marker is None or view.playback is None:
        return None
    number, of, marker = view.marker
    cue = cue_of(marker)
    answer_hidden = cue.answered and view.answered != number
    if not view.presenting:
        keys = f"{key_of('marker.answer')} shows the answer, {key_of('play')} continues" if answer_hidden else ""
        first = f"{key_of('presenter')} presents the cue cards" if number == 1 and not cue.answered else ""
        return Card(number, of, cue, _answer(view, cue), keys or first)
    message = view.notice.text if view.notice is not None else ""
    back, leave = f"{key_of('jump.back')} back", f"{key_of('back')} leaves"
    if view.playback.over:
        title = view.model.header.title if view.model.header is not None else ""
        return Card(of + 1, of, Cue(title, title=END), None, message or f"{back}   {leave}", True, roomy)
    guessed = f"{key_of('marker.guess')} guess   " * (cue.kind is not None and view.run is not None)
    on = f"{guessed * answer_hidden}{key_of('play')} {'answer' if answer_hidden else 'next'}   {back if number > 1 else leave}"
    return Card(number, of, cue, _answer(view, cue), message or on, True, roomy)


def take_guess(view: View, update: Callable[[], None]) -> tuple[PromptScreen, Callable[[str], None]]:
    """Return a dialog for a guess, and the function that takes the guess and shows the answer."""
    assert view.marker is not None and view.run is not None
    number, _, marker = view.marker
    cue = cue_of(marker)
    kind = cue.kind
    assert kind is not None
    choices = kind.choices(ComparedRun(view.model, view.run))

    def take(text: str) -> None:
        if text.strip():
            view.guesses[number] = pick(choices, text) if choices else parse_guess(kind, text)
        view.answered = number
        update()

    over_card = view.presenting and cue.panel != SOURCE
    return GuessScreen(f"Your guess: {cue.body}", choices, kind.hint or numbered(choices), over_card), take


def _excerpt(view: View, cue: Cue) -> SourceExcerpt | str | None:
    """Return the source lines of a card; the recording may contain them shortly after the marker."""
    if cue.panel != SOURCE or view.playback is None:
        return None
    if view.run is None:
        return "no run has started at this position; source lines belong to a run"
    run = view.playback.ahead(view.run, Source)
    try:
        return excerpt(view.model.runs.values(), run, cue.first, cue.last)
    except Refused as refusal:
        return str(refusal)


def _answer(view: View, cue: Cue) -> QuestionAnswer | str | None:
    """Return the answer if the user has requested it."""
    if view.marker is None or view.answered != view.marker[0] or not cue.answered:
        return None
    if cue.kind is None:
        return QuestionAnswer(cue.answer)
    run = view.run
    if run is None:
        return "no run has started at this position; the answer comes from a run"
    try:
        return answer_of(cue.kind, view.model, run, view.baseline_run)
    except Refused as refusal:
        return str(refusal)
