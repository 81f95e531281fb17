"""The words beside the numbers: the position, the relaxation of the marked cell, the path, the lesson."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from textual.content import Content

from fwtui.experiment.experiment import kernel_named
from fwtui.learn.real import Agreement
from fwtui.learn.stepping import Stepping
from fwtui.tui.frame.glossary import used
from fwtui.tui.learn.distance_grid import shown
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, hung, line
from fwtui_kernels.plan import EVERY

LABEL = 8


class StepPosition(NamedTuple):
    """Everything that the words depend on; the stepping itself changes in place."""

    stepping: Stepping
    at: tuple[int, int, int, int]  # edition, position, row, column
    agreement: Agreement | None
    comparing: bool


class StepWords(Drawn[StepPosition]):
    """Which step of which round this is, and what it did to the marked cell."""

    def draw(self, subject: StepPosition, width: int) -> Sequence[Content]:
        s = subject.stepping
        said = [*_cell(s), _path(s)]
        if s.negative_cycle:
            said.append(("cycle", "a cycle of negative length: there is no shortest path through it", "$text-error"))
        rows = [part for row in _where(s) for part in row.wrap(width)]
        told = [hung(line((f"{label:<{LABEL}}", MUTED)), words, width, style) for label, words, style in said]
        checked = hung(line((f"{'checked':<{LABEL}}", MUTED)), _agreement(subject), width)
        return [*rows, line(""), *chain(*told), line(""), *checked]


def _where(s: Stepping) -> list[Content]:
    trace, moment = s.trace, s.moment
    what = [trace.kernel.title, f"n {trace.n}"]
    if trace.kernel.tiles:
        what.append(f"tile {trace.shape.tile}")
    what.append("weights changed by hand" if s.edited else f"seed {s.experiment.seed}")
    rows = [line((" · ".join(what), STRONG))]
    if moment is None:
        return [*rows, line(("the graph itself: direct edges, ∞ if there is none", MUTED))]
    at = f"step {moment.step + 1} of {len(trace.plan)} · round {moment.round} of {trace.moments[-1].round} · "
    step = trace.plan[moment.step]
    what = f" · k = {moment.k}" + f" · rank {step.rank}" * (trace.shape.ranks > 1)
    if step.rank == EVERY:
        owner = moment.k // trace.shape.tile % trace.shape.ranks
        what = f" · the row of tiles from {moment.k} on: rank {owner} sends it to all others"
    return [*rows, line(at, (trace.kernel.phases[moment.phase], "$text-primary"), what)]


def _cell(s: Stepping) -> list[tuple[str, str, str]]:
    i, j, moment = s.row, s.column, s.moment
    here = shown(s.distances[i, j])
    if moment is None:
        return [("cell", f"d[{i},{j}] = {here}", "")]
    k, cell = moment.k, s.cell
    if cell is None:
        return [("cell", f"d[{i},{j}] = {here}, not written by this step", "")]
    formula = f"d[{i},{j}] = min(d[{i},{j}], d[{i},{k}] + d[{k},{j}])"
    numbers = f"{'':{len(f'd[{i},{j}]')}} = min({shown(cell.old)}, {shown(cell.to_k)} + {shown(cell.from_k)}) = {shown(cell.new)}"
    return [("cell", formula, ""), ("", numbers, "$text-primary" if cell.new < cell.old else "")]


def _path(s: Stepping) -> tuple[str, str, str]:
    if not s.path:
        return ("path", f"none known from {s.row} to {s.column} yet" if s.moment is not None else "no edge", MUTED)
    return ("path", " → ".join(map(str, s.path)) + f", length {shown(s.distances[s.row, s.column])}", "")


def _agreement(subject: StepPosition) -> str:
    backend = subject.stepping.trace.kernel.backend
    where = "in Numba's simulator" if backend == "cuda" else "compiled for the CPU"
    found = subject.agreement
    if subject.comparing:
        return f"running the kernel itself {where} …"
    if found is None:
        return f"NumPy carries out the kernel's plan; V runs the kernel itself {where} and compares"
    if found.reason:
        return f"the kernel itself could not be compared: {found.reason}"
    if found.wrong is not None:
        return f"the kernel itself {where} differs after step {found.wrong + 1}"
    after = f"after each of {found.looks} steps" if found.looks > 1 else "at the end"
    return f"✓ the kernel itself, {where}, has the same distances {after}"


class LessonWords(Drawn[str]):
    """The idea of a kernel, by its id, and why it suits the hardware; nothing beside the course, which explains that itself."""

    def draw(self, subject: str, width: int) -> Sequence[Content]:
        if not subject:
            return []
        kernel = kernel_named(subject)
        rows = [line((kernel.title, STRONG)), *Content(kernel.summary).wrap(width), line("")]
        rows += Content(kernel.lesson).wrap(width)
        terms = used(f"{kernel.summary} {kernel.lesson}")
        return [*rows, *line((f"? explains: {', '.join(terms)}", MUTED)).wrap(width)]
