"""What a document claims, and how a session's runs answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from fwtui import units
from fwtui.experiment import Experiment
from fwtui.reproduce.runs import Make, Missing, Results, label

HOLDS, REFUTED, UNTESTABLE = "holds", "refuted", "not testable here"
TOLERANCE = 1.5
ALIKE = 1.1
NOISE = 1.05
NOISY = 0.1  # spreads of two medians together, beyond which nothing can be said of their ratio
RULE = (
    f"a number or ratio holds within a factor {TOLERANCE:g} of the document's, a range when inside it widened by that factor; "
    f"bounds hold as stated; faster and slower mean by more than {NOISE - 1:.0%} and by more than both spreads together, alike "
    f"and no effect mean within {ALIKE - 1:.0%}; nothing is said where the spreads come to more than {NOISY:.0%}"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found here, the verdict, why it is not "holds", and what is to be known whatever the verdict."""

    value: str
    verdict: str
    reason: str = ""
    note: str = ""


Judge = Callable[[Results], Answer]


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: what the document says, its value there, how it is put to the test, and the judge of the results."""

    id: str
    words: str
    document: str  # its value, as it says it
    how: str
    judge: Judge
    lesson: str = ""  # why hardware of another time may answer differently

    def answer(self, results: Results) -> Answer:
        """What the session does not hold is not testable here, with the reason."""
        results.used.clear()
        try:
            answer = self.judge(results)
        except Missing as missing:
            return Answer("-", UNTESTABLE, str(missing))
        answer = replace(answer, note="; ".join(filter(None, (answer.note, results.throttled))))
        if answer.verdict != REFUTED:
            return answer
        return replace(answer, reason=". ".join(filter(None, (answer.reason, self.lesson))))


class Ratio(NamedTuple):
    """How many times as long one thing took as another, and what the spreads of both come to."""

    value: float
    noise: float

    @property
    def slower(self) -> bool:
        return self.value > max(NOISE, 1 + self.noise)


def judged(holds: bool, value: str, reason: str = "", note: str = "") -> Answer:
    """Holds, or refuted for that reason."""
    return Answer(value, HOLDS, note=note) if holds else Answer(value, REFUTED, reason, note)


def near(value: float, low: float, high: float | None = None) -> bool:
    """Whether the value is the document's, or inside its range, by the rule."""
    return low / TOLERANCE <= value <= (low if high is None else high) * TOLERANCE


def times(ratio: float) -> str:
    return f"{units.digits(ratio)}x"


def compared(results: Results, slow: Experiment, fast: Experiment) -> Ratio:
    """Time of `slow` over time of `fast`. Raises Missing, also where the passes differ too much to tell."""
    noise = results.spread(slow) + results.spread(fast)
    if noise > NOISY:
        raise Missing(f"{label(slow)} against {label(fast)}: spreads of {units.percent(noise)} together, too noisy to tell")
    return Ratio(results.seconds(slow) / results.seconds(fast), noise)


def ratios(results: Results, slow: Make, fast: Make, most: int = 2) -> dict[int, Ratio]:
    """`slow` compared with `fast`, by size, for the largest sizes that both ran at. Raises Missing."""
    return {n: compared(results, slow(n), fast(n)) for n in results.sizes(slow, fast)[-most:]}


def speedup(slow: Make, fast: Make, low: float, high: float | None = None, most: int = 2) -> Judge:
    """Holds where `fast` beats `slow` by low..high, at every one of the (at most `most`) largest sizes that both ran at."""

    def judge(results: Results) -> Answer:
        found = ratios(results, slow, fast, most)
        outside = {n: r for n, r in found.items() if not near(r.value, low, high)}
        reason = f"found {listed(outside)}" if outside else ""
        return judged(not outside, listed(found), reason)

    return judge


def slower(first: Make, second: Make, most: int = 2) -> Judge:
    """Holds where `first` is slower than `second` by more than noise at the largest sizes."""

    def judge(results: Results) -> Answer:
        found = ratios(results, first, second, most)
        return judged(all(r.slower for r in found.values()), f"time {listed(found)}", "it is not slower at every size")

    return judge


def no_faster(first: Make, second: Make, most: int = 2) -> Judge:
    """Holds where `first` gains nothing over `second` at the largest sizes."""

    def judge(results: Results) -> Answer:
        found = ratios(results, second, first, most)
        return judged(not any(r.slower for r in found.values()), f"speed-up {listed(found)}", "it does gain")

    return judge


def alike(first: Make, second: Make, most: int = 2) -> Judge:
    """Holds where the two take the same time."""

    def judge(results: Results) -> Answer:
        found = ratios(results, first, second, most)
        holds = all(1 / ALIKE <= r.value <= ALIKE for r in found.values())
        return judged(holds, f"time {listed(found)}", f"they differ by more than {ALIKE - 1:.0%}")

    return judge


def listed(found: Mapping[int, Ratio]) -> str:
    """Ratios by size, in words."""
    return ", ".join(f"{times(r.value)} (n {n})" for n, r in found.items())
