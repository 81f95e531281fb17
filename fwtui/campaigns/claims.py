"""The claims of five papers (claims.toml), and their evaluation over a session's runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from fwtui.analysis.data_sheet import fp32_flops, fp32_lanes
from fwtui.campaigns import evidence
from fwtui.campaigns.evidence import ALIKE, MAX_NOISE, NOISE, TOLERANCE, Evidence, Missing
from fwtui.campaigns.sweep.findings import bracket
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui_kernels import registry

HOLDS, REFUTED, UNTESTABLE = "holds", "refuted", "not testable here"
PAPERS = ("lund-smith", "henriod", "sing", "cs542200", "catinello")
BEGIN = "reproduce "  # the marker before the runs of a paper, followed by its name
RULE = (
    f"a number or ratio holds within a factor {TOLERANCE:g} of the document's, a range if inside it widened by that factor; "
    f"bounds hold as stated; faster and slower mean by more than {NOISE - 1:.0%} and by more than both spreads together, alike "
    f"and no effect mean within {ALIKE - 1:.0%}; ratios with spreads above {MAX_NOISE:.0%} in all are not evaluated"
)
Formula = str | tuple[str, ...]  # alternatives: the first one with data counts
_FUNCTIONS = {name: getattr(evidence, name) for name in ("needed", "slower", "faster", "alike", "near", "Ratio")}
_FUNCTIONS |= {"registry": registry, "bracket": bracket, "fp32_flops": fp32_flops, "fp32_lanes": fp32_lanes}
_FIELD = re.compile(r"\{([^{}]+?)(?::([\w.,]+))?\}")  # a formula, and a unit or a format


class Claim(Struct, frozen=True):
    id: str
    claim: str
    document: str  # the value as the document states it
    how: str
    here: Formula
    holds: str
    let: Mapping[str, Formula] = {}
    reason: str = ""
    because: tuple[tuple[str, str], ...] = ()  # condition and sentence
    note: str = ""


class RunGroup(Struct, frozen=True):
    """A group of experiments: every kernel at every size."""

    of: tuple[str, ...]
    n: tuple[int, ...]
    quick: tuple[int, ...] | None = None
    cpu: tuple[int, ...] | None = None  # sizes on a machine without a GPU
    file: bool = False

    def sizes(self, gpu: bool, quick: bool) -> tuple[int, ...]:
        full = self.quick if quick and self.quick is not None else self.n
        return full if gpu else self.cpu if self.cpu is not None else full[:1]


class Paper(Struct, frozen=True):
    name: str
    title: str
    dtype: str
    seconds: float  # for all runs
    runs: tuple[RunGroup, ...]
    claim: tuple[Claim, ...]
    counted: Mapping[str, int] = {}

    def heading(self, model: Model) -> str:
        return f"{self.title}, here: {model.gpu.name if model.gpu is not None else 'no GPU'}"


class Answer(NamedTuple):
    value: str
    verdict: str
    reason: str = ""
    note: str = ""


@cache
def papers() -> Mapping[str, Paper]:
    """Return the papers by name."""
    text = Path(__file__).with_name("claims.toml").read_text(encoding="utf-8")
    return {paper.name: paper for paper in msgspec.convert(tomllib.loads(text)["paper"], tuple[Paper, ...])}


def evidence_of(model: Model, paper: Paper, others: Sequence[Model] = ()) -> Evidence:
    """Return the runs of a paper's last reproduction in a session, or all runs without one."""
    begun = [marker for marker in model.markers if marker.text.startswith(BEGIN)]
    places = [i for i, marker in enumerate(begun) if marker.text.removeprefix(BEGIN).split(" ")[0] == paper.name]
    if not places:
        return Evidence(model, paper.dtype, others)
    ended = begun[places[-1] + 1].t if places[-1] + 1 < len(begun) else inf
    return Evidence(model, paper.dtype, others, begun[places[-1]].t, ended)


def evaluate(claim: Claim, found: Evidence) -> Answer:
    """Evaluate a claim; without the necessary data the answer is "not testable here" with a reason."""
    found.disturbed()  # clear the runs of the previous claim
    names = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")} | _FUNCTIONS | {"this": found}
    try:
        for name, formula in claim.let.items():
            names[name] = _first(formula, names, _value)
        value, holds = _first(claim.here, names, _text), _value(claim.holds, names)
        note = "; ".join(filter(None, (_text(claim.note, names), found.disturbed())))
        if holds:
            return Answer(value, HOLDS, note=note)
        because = "The reason is unknown"
        with suppress(Missing):
            because = next((_text(text, names) for condition, text in claim.because if _value(condition, names)), because)
        return Answer(value, REFUTED, ". ".join(filter(None, (_text(claim.reason, names), because))), note)
    except Missing as missing:
        return Answer("-", UNTESTABLE, str(missing))


def _first(formulas: Formula, names: dict[str, Any], read: Callable[[str, dict[str, Any]], Any]) -> Any:
    """Return the value of the first formula with data. Raises Missing with the reason of the first one."""
    first, *others = (formulas,) if isinstance(formulas, str) else formulas
    try:
        return read(first, names)
    except Missing:
        for formula in others:
            with suppress(Missing):
                return read(formula, names)
        raise


def _value(formula: str, names: dict[str, Any]) -> Any:
    return eval(formula, names)  # noqa: S307 - a formula of this package's table


def _text(template: str, names: dict[str, Any]) -> str:
    """Fill in the formulas in braces, each with the unit or the format after its colon."""

    def filled(field: re.Match[str]) -> str:
        value, form = _value(field[1], names), field[2] or ""
        return getattr(units, form)(value) if hasattr(units, form) else format(value, form)

    return _FIELD.sub(filled, template)
