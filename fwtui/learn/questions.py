"""Questions about a run whose answers come from the run, and the cue cards of a lecture that ask them.

A marker's text `@panel ?kind words` points at a panel and asks what the run answers; `@source 12-20` shows these lines of the
run's recorded source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from fwtui.analysis.compare import NOT_COMPARED, ComparedRun, compare
from fwtui.analysis.limits import limit_of
from fwtui.analysis.occupancy import occupancy
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.stream.events import Marker
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels.plan import WARP

CLOSE = 1.25  # a guess within this factor of the answer is close
RESOURCES = {  # in a choice: what a block can be short of
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
SOURCE = "source"  # the panel that is on the card itself
POINT = "• "  # begins each point of a list in a card's words, which are one line
_POINTED = re.compile(r"@([a-z]+)(?:\s+|$)", re.ASCII)
_LINES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?(?:\s+|$)", re.ASCII)
_QUESTION = re.compile(r"\?([a-z]*)(?:\s+|$)", re.ASCII)


class GuessChoice(NamedTuple):
    """A choice of a guess."""

    key: str
    words: str


class AnswerBar(NamedTuple):
    """A bar of an answer; `amount` is its length relative to its neighbours."""

    key: str
    title: str
    amount: float
    words: str


class QuestionAnswer(NamedTuple):
    """The answer of a run: a number, or the keys of the right parts (`right`)."""

    words: str
    number: float | None = None
    right: tuple[str, ...] = ()
    parts: tuple[AnswerBar, ...] = ()
    short: str = ""  # the number in words, where it is not that alone


class QuestionKind(NamedTuple):
    """A question: its usual words, what a guess looks like, and how a run answers it.

    `choices` and `answer` are given the run and, where it is compared, the one before; both raise Refused where the run
    does not say.
    """

    name: str
    ask: str
    answer: Callable[[ComparedRun, ComparedRun | None], QuestionAnswer]
    hint: str = ""  # to a guess that is typed; empty if one of several things is chosen
    say: Callable[[float], str] = str  # a number in words
    choices: Callable[[ComparedRun], tuple[GuessChoice, ...]] = lambda entrant: ()

    @property
    def compares(self) -> bool:
        """Return True if the question compares with another run."""
        return self.name == "speedup"


def _phase(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    phases = entrant.run.phases
    if len(phases) < 2:
        raise Refused(f"{entrant.label} was not timed phase by phase; ask about a run whose kernel has several phases")
    longest = max(phases, key=lambda p: p.seconds)
    parts = tuple(AnswerBar(p.key, p.title, p.share, units.percent(p.share)) for p in phases)
    return QuestionAnswer(f"{longest.title}: {units.percent(longest.share)} of the time", None, (longest.key,), parts)


def _phase_choices(entrant: ComparedRun) -> tuple[GuessChoice, ...]:
    return tuple(GuessChoice(part.key, part.title) for part in _phase(entrant, None).parts)


def _speedup(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    run = entrant.run
    if before is None:
        raise Refused(f"there is no run to compare {entrant.label} with; put one of the same n before it")
    if before.run.n != run.n:
        raise Refused(f"{before.label} has n = {before.run.n} and {entrant.label} n = {run.n}; only times of one n compare")
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
        raise Refused(f"{entrant.label} does not say what limits its occupancy; ask about a run on a GPU that does")
    capability = device.compute_capability if device is not None else None
    estimate = occupancy(capability, theory.threads, theory.registers, theory.shared_bytes)
    per_block = -(-theory.threads // WARP)
    allowed = {key: blocks * per_block for key, blocks in estimate.limits.items()} if estimate is not None else {}
    keys = [key for key in dict.fromkeys((*ALWAYS_OFFERED, *theory.limiters)) if key in allowed]
    parts = tuple(
        AnswerBar(key, TITLES.get(key, key), allowed[key], f"allow {units.counted(allowed[key], 'warp')}") for key in keys
    )
    share = theory.warps / theory.max_warps
    words = f"{' and '.join(theory.limiters)}: {theory.warps} of {theory.max_warps} warps, {units.percent(share)}"
    return QuestionAnswer(words, None, theory.limiters, parts)


def _limiter_choices(entrant: ComparedRun) -> tuple[GuessChoice, ...]:
    right = _limiter(entrant, None).right
    return tuple(GuessChoice(key, RESOURCES.get(key, key)) for key in dict.fromkeys((*ALWAYS_OFFERED, *right)))


def _peak(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    device = entrant.model.gpu_of(entrant.run)
    peak = device.peak_bytes_per_second if device is not None and entrant.run.backend == "cuda" else None
    if not peak or not entrant.run.bandwidth:
        raise Refused(f"{entrant.label} has no bandwidth or its device no peak; ask about a run on a GPU that reports both")
    share = _finite(entrant, entrant.run.bandwidth / peak)
    return QuestionAnswer(f"{units.percent(share)}: {units.bandwidth(entrant.run.bandwidth)} of {units.bandwidth(peak)}", share)


def _limit(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    limit = limit_of(entrant.model, entrant.run)
    if limit is None or limit.share is None:
        raise Refused(f"the limit of the device of {entrant.label} is not measured; `fwtui doctor --measure` measures it")
    words = f"{units.percent(limit.share)}: {units.rate(entrant.run.rate)} of {units.rate(limit.relaxations_per_second)}"
    return QuestionAnswer(words, limit.share)


def _seconds(entrant: ComparedRun, before: ComparedRun | None) -> QuestionAnswer:
    words = f"{units.duration(_seconds_of(entrant))}, {units.rate(entrant.run.rate)}"
    return QuestionAnswer(words, entrant.run.seconds)


def _seconds_of(entrant: ComparedRun) -> float:
    if not entrant.run.seconds or entrant.run.state != "done":
        raise Refused(f"{entrant.label} has no time; ask about a run that came to its end")
    return entrant.run.seconds


def _finite(entrant: ComparedRun, number: float) -> float:
    """A forged file may hold numbers without a finite quotient."""
    if not isfinite(number):
        raise Refused(f"{entrant.label} has numbers that cannot be compared; ask about another run")
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
        QuestionKind(
            "limit", "What share of the device's limit is that?", _limit, hint="a share such as 40 %", say=units.percent
        ),
    )
}


def answer_of(kind: QuestionKind, model: Model, run: Run, baseline: Run | None = None) -> QuestionAnswer:
    """Return the answer of a run; without a baseline it is compared with the previous run. Raises Refused."""
    before = baseline if kind.compares else None
    if kind.compares and before is None:  # the last of that n that had ended before this one began
        there = (r for r in model.runs.values() if r.n == run.n and r.finished is not None and r.finished <= run.started)
        before = max((r for r in there if r.seconds and not r.wrong), key=lambda r: r.started, default=None)
    return kind.answer(ComparedRun(model, run), ComparedRun(model, before) if before is not None else None)


def parse_guess(kind: QuestionKind, text: str) -> float:
    """A guess as it was typed, in seconds, as a share of 1, or as a ratio. Raises Refused."""
    found = _NUMBER.fullmatch(text.strip().lower().replace("×", "x"))
    if found is None or found[2] not in (None, *_UNITS.get(kind.name, ())):
        raise Refused(f"give {kind.hint}, not {quoted(text)}")  # what is cut off is what was typed
    number = float(found[1]) * _FACTORS.get(found[2] or "", 1.0)
    return number / 100 if kind.say is units.percent else number


def pick(choices: Sequence[GuessChoice], text: str) -> str:
    """The key of the choice that a guess names by its number, from 1. Raises Refused."""
    typed = text.strip()
    if not (typed.isascii() and typed.isdecimal() and 1 <= int(typed[:3]) <= len(choices)):
        raise Refused(f"give {numbered(choices)}, not {quoted(text)}")
    return choices[int(typed) - 1].key


def numbered(choices: Sequence[GuessChoice]) -> str:
    """The numbers that name a choice, in words."""
    return f"a number from 1 to {len(choices)}"


def verdict(kind: QuestionKind, guess: float | str, answer: QuestionAnswer) -> str:
    """Describe the distance of a guess from the answer."""
    if isinstance(guess, str):
        return "Right." if guess in answer.right else "Not this one."
    number = answer.number or 0.0
    if not guess or not number:
        return ""
    factor = max(guess / number, number / guess)
    if factor <= CLOSE:
        return "Close."
    return f"{units.digits(factor)} times too {'high' if guess > number else 'low'}."


class Cue(NamedTuple):
    """A marker in parts. A question without a kind has the answer that is written with it, if any."""

    words: str
    panel: str = ""
    asks: bool = False
    kind: QuestionKind | None = None
    title: str = ""
    answer: str = ""
    first: int = 0  # line of the source, if the card is about that; 0: what is most telling
    last: int = 0

    @property
    def lines(self) -> list[str]:
        """The words as a card shows them: each point of a list in a line of its own."""
        first, *points = self.words.split(POINT)
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
        """The panel by its name, and the words, else the title."""
        words = self.words or self.title
        return f"{PANELS[self.panel]}: {words}" if self.panel else words

    @property
    def span(self) -> str:
        """The lines of the source in words: 12-20, or 12; empty if the card names none."""
        return "" if not self.first else f"{self.first}-{self.last}" if self.last > self.first else str(self.first)

    @property
    def text(self) -> str:
        """The text that cue() reads as these parts, without title and answer."""
        pointed = f"@{self.panel} " * bool(self.panel) + f"{self.span} " * bool(self.span)
        question = f"?{self.kind.name if self.kind is not None else ''} " * self.asks
        return f"{pointed}{question}{self.words}".strip()


def cue(text: str, title: str = "", answer: str = "") -> Cue:
    """The parts of a marker; what is neither a panel nor a kind of question stays words.

    A question in the very words of a kind is of that kind.
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
    words = rest[match.end() :].strip()
    kind = KINDS.get(match[1]) or next((kind for kind in KINDS.values() if kind.ask.lower() == words.lower()), None)
    return Cue(words or (kind.ask if kind is not None else ""), panel, True, kind, title, answer, first, last)


def cue_of(marker: Marker) -> Cue:
    """The cue card that a marker is."""
    return cue(marker.text, marker.title, marker.answer)
