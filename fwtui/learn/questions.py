"""Questions that a run answers, and the cue cards of a lecture.

A marker with the text `@panel ?kind text` highlights a panel and asks a question; `@source 12-20` shows these lines of the
run's recorded source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from fwtui.analysis.compare import NOT_COMPARED, ComparedRun, compare
from fwtui.analysis.limits import limit_of, of_all_devices
from fwtui.analysis.occupancy import occupancy
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.stream.events import Marker
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels.plan import WARP

CLOSE = 1.25  # a guess within this factor of the answer is close
RESOURCES = {  # limits of the theoretical occupancy, as choices
    "registers": "registers, the memory of each thread",
    "shared memory": "shared memory, the memory of each block",
    "warps": "neither: as many warps as there is room for",
    "blocks": "the most blocks that fit at once",
    "barriers": "the number of barriers",
}
TITLES = {"warps": "room for warps"}  # in an answer
ALWAYS_OFFERED = ("registers", "shared memory", "warps")  # resources that every question offers
_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(%|x|us|ms|s|min|h)?", re.ASCII)
_FACTORS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNITS = {"speedup": ("x",), "seconds": tuple(_FACTORS), "peak": ("%",), "limit": ("%",)}
PANELS: Mapping[str, str] = {
    "total": "the total and its rate",
    "phases": "the phases",
    "meters": "the meters",
    "outside": "stages that are not timed",
    "check": "how it was checked",
    "matrix": "the matrix",
    "runs": "the table of runs",
    "telemetry": "the telemetry",
    "source": "the source",
}
SOURCE = "source"  # this panel is part of the card
POINT = "• "  # prefix of a list item within the text of a card, which is one line
_POINTED = re.compile(r"@([a-z]+)(?:\s+|$)", re.ASCII)
_LINES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?(?:\s+|$)", re.ASCII)
_QUESTION = re.compile(r"\?([a-z]*)(?:\s+|$)", re.ASCII)


class GuessChoice(NamedTuple):
    """A choice of a guess."""

    key: str
    text: str


class AnswerBar(NamedTuple):
    """A bar of an answer; `amount` is its length relative to the other bars."""

    key: str
    title: str
    amount: float
    text: str


class QuestionAnswer(NamedTuple):
    """The answer of a run: a number, or the keys of the correct parts (`right`)."""

    text: str
    number: float | None = None
    right: tuple[str, ...] = ()
    parts: tuple[AnswerBar, ...] = ()
    short: str = ""  # the formatted number if the kind formats it differently, such as ≥ 10x


class QuestionKind(NamedTuple):
    """A kind of question: its default text, the form of a guess, and the functions that compute choices and answer.

    `choices` takes the run, `answer` also its baseline. Both raise Refused if the run lacks the values.
    """

    name: str
    ask: str
    answer: Callable[[ComparedRun, ComparedRun | None], QuestionAnswer]
    hint: str = ""  # form of a typed guess; empty for a choice
    say: Callable[[float], str] = str  # formats a number
    choices: Callable[[ComparedRun], tuple[GuessChoice, ...]] = lambda entrant: ()

    @property
    def compares(self) -> bool:
        """Return True if the question compares with another run."""
        return self.name == "speedup"


def _phase(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    phases = entrant.run.phases
    if len(phases) < 2:
        raise Refused(f"{entrant.label} has no per-phase times; choose a run of a kernel with several phases")
    longest = max(phases, key=lambda p: p.seconds)
    parts = tuple(AnswerBar(p.key, p.title, p.share, units.percent(p.share)) for p in phases)
    return QuestionAnswer(f"{longest.title}: {units.percent(longest.share)} of the time", None, (longest.key,), parts)


def _phase_choices(entrant: ComparedRun) -> tuple[GuessChoice, ...]:
    return tuple(GuessChoice(part.key, part.title) for part in _phase(entrant, None).parts)


def _speedup(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    run = entrant.run
    if before is None:
        raise Refused(f"{entrant.label} has no baseline; put a run of the same graph before it")
    ratio = _finite(entrant, _seconds_of(before) / _seconds_of(entrant))
    found = compare(entrant, before)
    if found.verdict == NOT_COMPARED:
        raise Refused(f"{entrant.label} and {before.label} are not compared: {found.why}")
    took = f"{units.duration(run.seconds)} against {units.duration(before.run.seconds)}"
    return QuestionAnswer(f"{found.headline}: {took}", found.speedup or ratio, short=found.speedup_text or units.gain(ratio))


def _limiter(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    theory = entrant.run.main_occupancy
    device = entrant.model.gpu_of(entrant.run)
    if theory is None or not (theory.limiters and theory.max_warps and theory.threads):
        raise Refused(f"{entrant.label} has no theoretical occupancy; choose a run on a GPU that has one")
    capability = device.compute_capability if device is not None else None
    estimate = occupancy(capability, theory.threads, theory.registers, theory.shared_bytes)
    per_block = -(-theory.threads // WARP)
    allowed = {key: blocks * per_block for key, blocks in estimate.limits.items()} if estimate is not None else {}
    keys = [key for key in dict.fromkeys((*ALWAYS_OFFERED, *theory.limiters)) if key in allowed]
    parts = tuple(AnswerBar(k, TITLES.get(k, k), allowed[k], f"allow {units.counted(allowed[k], 'warp')}") for k in keys)
    fit, share = f"{theory.warps} of {theory.max_warps} warps", units.percent(theory.warps / theory.max_warps)
    if theory.warps < theory.max_warps:
        return QuestionAnswer(f"{' and '.join(theory.limiters)}: {fit}, {share}", None, theory.limiters, parts)
    enough = " and ".join(key for key in keys if key != "warps" and allowed[key] == theory.warps)
    exact = f"; {enough} {'is' if enough == 'shared memory' else 'are'} just enough" if enough else ""
    return QuestionAnswer(f"All {theory.warps} warps fit{exact}", None, ("warps",), parts)


def _limiter_choices(entrant: ComparedRun) -> tuple[GuessChoice, ...]:
    right = _limiter(entrant, None).right
    return tuple(GuessChoice(key, RESOURCES.get(key, key)) for key in dict.fromkeys((*ALWAYS_OFFERED, *right)))


def _peak(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    device = entrant.model.gpu_of(entrant.run) if entrant.run.backend == "cuda" else None
    peak = of_all_devices(entrant.run, device.peak_bytes_per_second) if device is not None else None
    if not peak or not entrant.run.bandwidth:
        raise Refused(f"{entrant.label} has no effective or peak bandwidth; choose a run on a GPU that reports both")
    share = _finite(entrant, entrant.run.bandwidth / peak)
    return QuestionAnswer(f"{units.percent(share)}: {units.bandwidth(entrant.run.bandwidth)} of {units.bandwidth(peak)}", share)


def _limit(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    limit = limit_of(entrant.model, entrant.run)
    if limit is None or limit.share is None:
        raise Refused(f"the peak rate of the device of {entrant.label} is not measured; `fwtui doctor --measure` measures it")
    text = f"{units.percent(limit.share)}: {units.rate(entrant.run.rate)} of {units.rate(limit.relaxations_per_second)}"
    return QuestionAnswer(text, limit.share)


def _seconds(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    text = f"{units.duration(_seconds_of(entrant))}, {units.rate(entrant.run.rate)}"
    return QuestionAnswer(text, entrant.run.seconds)


def _seconds_of(entrant: ComparedRun) -> float:
    if not entrant.run.seconds or entrant.run.state != "done":
        raise Refused(f"{entrant.label} has no time; choose a run that finished")
    return entrant.run.seconds


def _finite(entrant: ComparedRun, number: float) -> float:
    """Return a quotient of recorded numbers. Raises Refused if it is not finite, as in a forged file."""
    if not isfinite(number):
        raise Refused(f"{entrant.label} has numbers that cannot be compared; choose another run")
    return number


KINDS: Mapping[str, QuestionKind] = {
    kind.name: kind
    for kind in (
        QuestionKind("phase", "Which phase takes longest?", _phase, choices=_phase_choices),
        QuestionKind("speedup", "What is the speedup over the run before?", _speedup, hint="a factor such as 3", say=units.gain),
        QuestionKind(
            "seconds", "How long does it take?", _seconds, hint="a time such as 20 s, 5 ms or 2 min", say=units.duration
        ),
        QuestionKind("limiter", "What limits the number of resident warps?", _limiter, choices=_limiter_choices),
        QuestionKind("peak", "What share of the peak bandwidth is that?", _peak, hint="a share such as 40 %", say=units.percent),
        QuestionKind("limit", "What share of the peak rate is that?", _limit, hint="a share such as 40 %", say=units.percent),
    )
}


def answer_of(kind: QuestionKind, model: Model, run: Run, baseline: Run | None = None) -> QuestionAnswer:
    """Return the answer of a run; the default baseline is the previous run on the same graph. Raises Refused."""
    before = baseline if kind.compares else None
    if kind.compares and before is None:  # the last run on this graph that had finished before this run started
        there = (r for r in model.runs.values() if r.finished is not None and r.finished <= run.started)
        alike = (r for r in there if r.experiment.graph == run.experiment.graph and r.seconds and not r.wrong)
        before = max(alike, key=lambda r: r.started, default=None)
    return kind.answer(ComparedRun(model, run), ComparedRun(model, before) if before is not None else None)


def parse_guess(kind: QuestionKind, text: str) -> float:
    """Parse a typed guess: seconds, a share of 1, or a ratio. Raises Refused if it has another form."""
    found = _NUMBER.fullmatch(text.strip().lower().replace("×", "x"))
    if found is None or found[2] not in (None, *_UNITS.get(kind.name, ())):
        raise Refused(f"type {kind.hint}, not {quoted(text)}")
    number = float(found[1]) * _FACTORS.get(found[2] or "", 1.0)
    return number / 100 if kind.say is units.percent else number


def pick(choices: Sequence[GuessChoice], text: str) -> str:
    """Return the key of the choice with the typed number, from 1. Raises Refused if there is no such choice."""
    typed = text.strip()
    if not (typed.isascii() and typed.isdecimal() and 1 <= int(typed[:3]) <= len(choices)):
        raise Refused(f"type {numbered(choices)}, not {quoted(text)}")
    return choices[int(typed) - 1].key


def numbered(choices: Sequence[GuessChoice]) -> str:
    """Describe the numbers of the choices."""
    return f"a number from 1 to {len(choices)}"


def verdict(kind: QuestionKind, guess: float | str, answer: QuestionAnswer) -> str:
    """Describe the distance of a guess from the answer."""
    if isinstance(guess, str):
        guessed = next((part.title for part in answer.parts if part.key == guess and guess not in TITLES), "this one")
        return "Right." if guess in answer.right else f"Not {guessed}."
    number = answer.number or 0.0
    if not guess or not number:
        return ""
    factor = max(guess / number, number / guess)
    if factor <= CLOSE:
        return "Close."
    return f"{units.digits(factor)} times too {'high' if guess > number else 'low'}."


class Cue(NamedTuple):
    """The parts of a marker. A question without a kind has the answer in `answer`, if any."""

    body: str
    panel: str = ""
    asks: bool = False
    kind: QuestionKind | None = None
    title: str = ""
    answer: str = ""
    first: int = 0  # first line of the source excerpt; 0: the most interesting lines
    last: int = 0

    @property
    def lines(self) -> list[str]:
        """The lines of the card: the text, and each list item on a separate line."""
        first, *points = self.body.split(POINT)
        return [line.strip() for line in (first, *(POINT + point for point in points)) if line.strip()]

    @property
    def directed(self) -> bool:
        """Return True if the cue points, has a title or asks."""
        return bool(self.panel or self.title) or self.asks

    @property
    def answered(self) -> bool:
        """Return True if there is an answer to show."""
        return self.kind is not None or (self.asks and bool(self.answer))

    @property
    def in_short(self) -> str:
        """The text, else the title, after the panel that a statement points at."""
        return self.pointer + (self.body or self.title)

    @property
    def pointer(self) -> str:
        """The panel before a statement; empty before a question, which it would interrupt."""
        return f"{PANELS[self.panel]}: " if self.panel and not self.asks else ""

    @property
    def span(self) -> str:
        """The lines of the source: 12-20, or 12; empty if the card names none."""
        return "" if not self.first else f"{self.first}-{self.last}" if self.last > self.first else str(self.first)

    @property
    def text(self) -> str:
        """The text that cue() splits into these parts, without title and answer."""
        pointed = f"@{self.panel} " * bool(self.panel) + f"{self.span} " * bool(self.span)
        question = f"?{self.kind.name if self.kind is not None else ''} " * self.asks
        return f"{pointed}{question}{self.body}".strip()


def cue(text: str, title: str = "", answer: str = "") -> Cue:
    """Split the text of a marker into panel, lines, question and body.

    An unknown panel or kind of question is part of the body. A question equal to the default text of a kind has that kind.
    """
    rest, panel = text.strip(), ""
    pointed = _POINTED.match(rest)
    if pointed is not None and pointed[1] in PANELS:
        panel, rest = pointed[1], rest[pointed.end() :]
    first = last = 0
    if panel == SOURCE and (span := _LINES.match(rest)) is not None:
        first, last, rest = int(span[1]), int(span[2] or span[1]), rest[span.end() :]
    match = _QUESTION.match(rest)
    if match is None or match[1] not in ("", *KINDS):
        return Cue(rest, panel, title=title, answer=answer, first=first, last=last)
    body = rest[match.end() :].strip()
    kind = KINDS.get(match[1]) or next((kind for kind in KINDS.values() if kind.ask.lower() == body.lower()), None)
    return Cue(body or (kind.ask if kind is not None else ""), panel, True, kind, title, answer, first, last)


def cue_of(marker: Marker) -> Cue:
    """Return the cue card of a marker."""
    return cue(marker.text, marker.title, marker.answer)
