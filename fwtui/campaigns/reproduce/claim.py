"""A document's claims, and how a session's runs answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from fwtui.campaigns.reproduce.results import Make, Missing, Results, label, needed
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment

HOLDS, REFUTED, UNTESTABLE = "holds", "refuted", "not testable here"
TOLERANCE = 1.5
ALIKE = 1.1
NOISE = 1.05
MOST_SIZES = 2  # number of the largest sizes at which two kernels are compared
NOISY = 0.1  # sum of the spreads of two medians above which their ratio cannot be judged
UNKNOWN = "The reason is not known"
RULE = (
    f"a number or ratio holds within a factor {TOLERANCE:g} of the document's, a range when inside it widened by that factor; "
    f"bounds hold as stated; faster and slower mean by more than {NOISE - 1:.0%} and by more than both spreads together, alike "
    f"and no effect mean within {ALIKE - 1:.0%}; nothing is said where the spreads come to more than {NOISY:.0%}"
)


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The result here, the verdict, why it is not "holds", and a note for any verdict."""

    value: str
    verdict: str
    reason: str = ""
    note: str = ""
    cause: str = ""  # of a different result, if the session supports one; Claim.answer() adds it to the reason


Judge = Callable[[Results], ClaimAnswer]
Cause = Callable[[Results, int], str]  # results and the largest size compared -> a sentence, empty without support


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: the document's words and value, how it is tested, and the judge of the results."""

    id: str
    words: str
    document: str  # its value, in the document's words
    how: str
    judge: Judge

    def answer(self, results: Results) -> ClaimAnswer:
        """Without the data in the session the answer is "not testable here", with the reason."""
        results.used.clear()
        try:
            answer = self.judge(results)
        except Missing as missing:
            return ClaimAnswer("-", UNTESTABLE, str(missing))
        answer = replace(answer, note="; ".join(filter(None, (answer.note, results.disturbed))))
        if answer.verdict != REFUTED:
            return answer
        return replace(answer, reason=". ".join(filter(None, (answer.reason, answer.cause or UNKNOWN))), cause="")


def claim(id: str, words: str, document: str) -> Callable[[Judge], Claim]:
    """Makes a claim from a judge, whose docstring tells the user how it is tested."""
    return lambda judge: Claim(id, words, document, judge.__doc__ or "", judge)


class Ratio(NamedTuple):
    """The ratio of two times, and the sum of their spreads."""

    value: float
    noise: float

    @property
    def slower(self) -> bool:
        return self.value > max(NOISE, 1 + self.noise)

    @property
    def faster(self) -> bool:
        return 1 / self.value > max(NOISE, 1 + self.noise)


def judged(holds: bool, value: str, reason: str = "", note: str = "", cause: str = "") -> ClaimAnswer:
    """Holds, or is refuted for that reason and with that cause."""
    return ClaimAnswer(value, HOLDS, note=note) if holds else ClaimAnswer(value, REFUTED, reason, note, cause)


def always(words: str) -> Cause:
    """The same cause at every size: for causes in the kernels themselves."""
    return lambda results, n: words


UNEXPLAINED = always("")


def near(value: float, low: float, high: float | None = None) -> bool:
    """Whether the value agrees with the document's value or range, by the rule."""
    return low / TOLERANCE <= value <= (low if high is None else high) * TOLERANCE


def time_ratio(results: Results, slow: Experiment, fast: Experiment) -> Ratio:
    """Time of `slow` over time of `fast`. Raises Missing, also if the passes vary too much."""
    noise = results.spread(slow) + results.spread(fast)
    about = f"{label(slow)} against {label(fast)}"
    needed(noise <= NOISY, f"{about}: spreads of {units.percent(noise)} together, too noisy to judge")
    return Ratio(results.seconds(slow) / results.seconds(fast), noise)


def ratios(results: Results, slow: Make, fast: Make, most: int = MOST_SIZES) -> dict[int, Ratio]:
    """`slow` compared with `fast`, by size, for the largest sizes that both ran at. Raises Missing."""
    return {n: time_ratio(results, slow(n), fast(n)) for n in results.sizes(slow, fast)[-most:]}


def speedup(
    results: Results, slow: Make, fast: Make, low: float, high: float, above: Cause = UNEXPLAINED, below: Cause = UNEXPLAINED
) -> ClaimAnswer:
    """Holds if `fast` beats `slow` by low..high at the largest sizes; `above` and `below` explain more and less."""
    by_size = ratios(results, slow, fast)
    outside = {n: r for n, r in by_size.items() if not near(r.value, low, high)}
    if not outside:
        return judged(True, ratio_words(by_size))
    n = max(outside)
    cause = (above if outside[n].value > low else below)(results, n)
    return judged(False, ratio_words(by_size), f"found {ratio_words(outside)}", cause=cause)


def slower(results: Results, first: Make, second: Make, *, same: Cause = UNEXPLAINED, most: int = MOST_SIZES) -> ClaimAnswer:
    """Holds if `first` is slower than `second` by more than noise at the largest sizes; `same` explains equal times.
    It does not explain a faster `first`.
    """
    by_size = ratios(results, first, second, most)
    cause = "" if any(r.faster for r in by_size.values()) else same(results, max(by_size))
    holds = all(r.slower for r in by_size.values())
    return judged(holds, f"time {ratio_words(by_size)}", "it is not slower at every size", cause=cause)


def no_faster(results: Results, first: Make, second: Make, *, gains: Cause = UNEXPLAINED) -> ClaimAnswer:
    """Holds if `first` gains nothing over `second` at the largest sizes; `gains` explains a gain."""
    by_size = ratios(results, second, first)
    holds = not any(r.slower for r in by_size.values())
    return judged(holds, f"speed-up {ratio_words(by_size)}", "it does gain", cause=gains(results, max(by_size)))


def alike(
    results: Results, first: Make, second: Make, *, longer: Cause = UNEXPLAINED, shorter: Cause = UNEXPLAINED
) -> ClaimAnswer:
    """Holds if the two take the same time; else `longer` explains why `first` takes more, `shorter` why it takes less."""
    by_size = ratios(results, first, second)
    outside = [n for n, r in by_size.items() if not 1 / ALIKE <= r.value <= ALIKE]
    if not outside:
        return judged(True, f"time {ratio_words(by_size)}")
    n = outside[-1]
    cause = (longer if by_size[n].value > 1 else shorter)(results, n)
    return judged(False, f"time {ratio_words(by_size)}", f"they differ by more than {ALIKE - 1:.0%}", cause=cause)


def ratio_words(by_size: Mapping[int, Ratio]) -> str:
    """Ratios by size, in words."""
    return ", ".join(f"{times(r.value)} (n {n})" for n, r in by_size.items())
