"""What a document claims, and how a session's runs answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fwtui.reproduce.runs import Make, Missing, Results

HOLDS, REFUTED, UNTESTABLE = "holds", "refuted", "not testable here"
TOLERANCE = 1.5
ALIKE = 1.1
NOISE = 1.05
RULE = (
    f"a number or ratio holds within a factor {TOLERANCE:g} of the document's, a range when inside it widened by that factor; "
    f"bounds hold as stated; faster and slower mean by more than {NOISE - 1:.0%}, no effect means within {ALIKE - 1:.0%}"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found here, the verdict, and what explains it."""

    value: str
    verdict: str
    reason: str = ""


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
        """Never raises: what the session does not hold is not testable here, with the reason."""
        try:
            answer = self.judge(results)
        except Missing as missing:
            return Answer("-", UNTESTABLE, str(missing))
        if answer.verdict != REFUTED:
            return answer
        return Answer(answer.value, REFUTED, ". ".join(filter(None, (answer.reason, self.lesson))))


def judged(holds: bool, value: str, reason: str = "") -> Answer:
    """Holds, or refuted for that reason."""
    return Answer(value, HOLDS) if holds else Answer(value, REFUTED, reason)


def near(value: float, low: float, high: float | None = None) -> bool:
    """Whether the value is the document's, or inside its range, by the rule."""
    return low / TOLERANCE <= value <= (low if high is None else high) * TOLERANCE


def times(ratio: float) -> str:
    return f"{ratio:.3g}x"


def speedup(slow: Make, fast: Make, low: float, high: float | None = None, most: int = 2) -> Judge:
    """Holds where `fast` beats `slow` by low..high, at every one of the (at most `most`) largest sizes that both ran at."""

    def judge(results: Results) -> Answer:
        found = ratios(results, slow, fast, most)
        outside = {n: r for n, r in found.items() if not near(r, low, high)}
        reason = f"found {_listed(outside)}" if outside else ""
        return judged(not outside, _listed(found), reason)

    return judge


def ratios(results: Results, slow: Make, fast: Make, most: int = 2) -> dict[int, float]:
    """Time of `slow` over time of `fast`, by size, for the largest sizes that both ran at. Raises Missing."""
    sizes = results.sizes(slow, fast)[-most:]
    return {n: results.seconds(slow(n)) / results.seconds(fast(n)) for n in sizes}


def slower(first: Make, second: Make, most: int = 2) -> Judge:
    """Holds where `first` is slower than `second` by more than noise at the largest sizes."""

    def judge(results: Results) -> Answer:
        found = ratios(results, first, second, most)
        holds = all(r > NOISE for r in found.values())
        return judged(holds, f"time {_listed(found)}", "" if holds else "it is not slower at every size")

    return judge


def no_faster(first: Make, second: Make, most: int = 2) -> Judge:
    """Holds where `first` gains nothing over `second` at the largest sizes."""

    def judge(results: Results) -> Answer:
        found = ratios(results, second, first, most)
        holds = all(r < NOISE for r in found.values())
        return judged(holds, f"speed-up {_listed(found)}", "" if holds else "it does gain")

    return judge


def alike(first: Make, second: Make, within: float = ALIKE, most: int = 2) -> Judge:
    """Holds where the two take the same time within that factor."""

    def judge(results: Results) -> Answer:
        found = ratios(results, first, second, most)
        holds = all(1 / within <= r <= within for r in found.values())
        return judged(holds, f"time {_listed(found)}", "" if holds else f"they differ by more than a factor {within:g}")

    return judge


def _listed(found: dict[int, float]) -> str:
    return ", ".join(f"{times(r)} (n {n})" for n, r in found.items())
