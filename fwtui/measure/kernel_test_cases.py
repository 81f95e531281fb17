"""The graphs of a kernel test: sizes around a tile, kinds of graphs, data types; and the description of a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from fwtui.analysis.plan_checks import sizes
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.engine.engine import Engine
from fwtui.experiment.experiment import FULL_CHECK, SIMULATOR_MAX_N, Experiment
from fwtui.experiment.generate import fill_numpy, generate
from fwtui.graphs.graph import GraphInput
from fwtui.measure.cuda_errors import describe_kernel_fault
from fwtui.measure.inputs import fill_for
from fwtui.stream.kernel_tests import RACY, WRONG
from fwtui_kernels.own import describe_error
from fwtui_kernels.plan import FLOATS, WARP, Kernel, Shape

SIMULATED_SIDE = 4  # side of a thread block in the simulator, for a kernel without tiles
MAX_SIMULATED = 350_000  # relaxations of a test in the simulator, which needs some microseconds for each
LARGE_SIMULATED = 100_000  # relaxations of a case that runs only once


class Case(NamedTuple):
    """A graph, and the reason why it is tested."""

    name: str
    graph: Experiment


def kernel_test_ladder(kernel: Kernel, tile: int, simulated: bool, more: Sequence[int] = ()) -> Iterator[Case]:
    """Yield cases from one vertex up: every kind of graph at two tiles and more, every data type at one tile plus one."""
    side = tile if tile > 1 else SIMULATED_SIDE if simulated else WARP
    most = min(kernel.max_n, max(SIMULATOR_MAX_N, side + 1) if simulated else kernel.max_n)
    around = [n for n in sizes(side) if n <= most]
    first, *others = kernel.dtypes
    what = "tile" if tile > 1 else "block" if simulated else "warp"
    names = {around[-1]: f", two {what}s and a bit", side + 1: f", one more than a {what}", side: f", one {what}"}
    names |= {side - 1: f", one less than a {what}"}
    if kernel.backend == "cpu" and tile <= 1:  # no size is special without tiles
        names = {}
    names[1] = ", one vertex"
    for n in around:
        # few edges and long paths reveal missing relaxations
        yield _case(f"n = {n}{names.get(n, '')}", n, first, density=0.15, connected=True)
    n = around[-1]
    yield _case(f"n = {n}, unreachable pairs", n, first, density=0.08)
    # path lengths far beyond a sentinel that is too small; in floating types, fractions whose sums are still exact
    longest = {"int16": 2**13, "int32": 2**24}.get(first, 2**16)
    weights = {"low": longest // n // 2, "high": longest // n, "real": first in FLOATS}
    yield _case(f"n = {n}, one cycle through all vertices", n, first, density=0.0, connected=True, **weights)
    signed = next((dtype for dtype in kernel.dtypes if dtype != "int16"), None)
    if signed is not None:
        yield _case(f"n = {n}, negative weights", n, signed, negative=0.4)
        yield _case(f"n = {n}, a negative cycle", n, signed, low=-3, high=5, density=0.6)
    for dtype in others:
        yield _case(f"n = {side + 1}, {dtype}", min(side + 1, n), dtype)
        yield _case(f"n = {n}, unreachable pairs, {dtype}", n, dtype, density=0.08)
    for n in more:
        if n <= most:
            yield _case(f"n = {n}", n, first)


def select_affordable(cases: Sequence[Case], tile: int) -> list[Case]:
    """Select cases within the simulator's budget: one vertex, more than a tile, then the others in order."""
    left, families = MAX_SIMULATED, set[str]()
    for case in sorted(cases, key=lambda case: (case.graph.n > 1, case.graph.n <= tile)):
        work = relaxations(case.graph.n, tile)
        work *= 1 if runs_once(case.graph.n, tile) else 2
        if work <= left or not families:
            families.add(case.name)
            left -= work
    return [case for case in cases if case.name in families]


def relaxations(n: int, tile: int) -> int:
    """Return the number of relaxations of one run, padding included."""
    return (-(-n // tile) * tile) ** 3


def runs_once(n: int, tile: int) -> bool:
    """Return True if the case is so large that the simulator runs it only once."""
    return relaxations(n, tile) > LARGE_SIMULATED


def tile_of(kernel: Kernel, simulated: bool) -> int:
    """Return the default tile of a test: the kernel's default, or in the simulator the smallest one."""
    small = min((tile for tile in kernel.tiles_for(True) if tile >= SIMULATED_SIDE), default=0)
    return (small if simulated and small else kernel.tile_for(0, simulated)) or 1


def watch_accesses(active: bool, accesses: Counter[Any]) -> AbstractContextManager[Any]:
    """Return the simulator's access log, or a null context if it was not requested."""
    if not active:
        return nullcontext()
    from fwtui_kernels.compiled import simulator_races

    return simulator_races.race_log(accesses)


def find_misuse(log: Any, wrong: bool) -> tuple[str, str]:
    """Return the outcome and a sentence for illegal accesses in the log; both are empty if there are none."""
    if log is None:
        return "", ""
    if log.divergence:
        return WRONG, log.divergence
    if wrong and log.unwritten is not None:
        return WRONG, f"{log.unwritten} reads shared memory that no thread has written"
    if harm := next((race for race in log.races if race.harms and race.memory == "shared"), None):
        return RACY, f"it races: {harm} them: put cuda.syncthreads() there"
    return "", ""


def graph_and_shape(kernel: Kernel, experiment: Experiment, tile: int, engine: Engine) -> tuple[GraphInput, Shape]:
    """Return the graph, and the shape with the kernel's default options."""
    graph = generate(experiment, fill_numpy if experiment.n <= FULL_CHECK["cpu"] else fill_for(engine, experiment.n))
    return graph, Shape(graph.n, tile, experiment.dtype, nonnegative=graph.nonnegative, options=kernel.defaults)


def describe_failure(error: BaseException, path: Path | None) -> str:
    """Describe an exception of the kernel in `path`."""
    if isinstance(error, Refused):
        return str(error)
    if did := describe_kernel_fault(str(error)):
        return f"the kernel {did}"
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    message = describe_error(error, path) if path is not None else f"{type(error).__name__}: {error}"
    if isinstance(error, IndexError) and notes:
        return sanitise(f"the kernel reads or writes outside its arrays{notes}: {message}")
    return sanitise(f"{message}{notes}")


def _case(name: str, n: int, dtype: str, **graph: object) -> Case:
    return Case(name, Experiment(n=n, dtype=dtype, **graph))  # type: ignore[arg-type]
