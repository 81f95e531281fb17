"""The graphs that a kernel is tried on: small ones around the size of a tile, then kinds of graphs, then number types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fwtui.analysis.plan_checks import sizes
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment
from fwtui_kernels.plan import WARP, Kernel

SIMULATED_SIDE = 4  # of a block of threads in the simulator, for a kernel without tiles


class Case(NamedTuple):
    """A graph, and in words why it is tried."""

    name: str
    graph: Experiment


def ladder(kernel: Kernel, tile: int, simulated: bool, asked: Sequence[int] = ()) -> Iterator[Case]:
    """From one vertex up; every kind at two tiles and a bit, every number type at one tile and one more."""
    side = tile if tile > 1 else SIMULATED_SIDE if simulated else WARP
    most = min(kernel.max_n, SIMULATOR_MAX_N if simulated else kernel.max_n)
    around = [n for n in sizes(side) if n <= most]
    first, *others = kernel.dtypes
    what = "tile" if tile > 1 else "block" if simulated else "warp"
    names = {around[-1]: f", two {what}s and a bit", side + 1: f", one more than a {what}", side: f", one {what}"}
    names |= {side - 1: f", one less than a {what}"}
    if kernel.backend == "cpu" and tile <= 1:  # no size is special
        names = {}
    names[1] = ", one vertex"
    for n in around:
        # few edges and long paths: what is not done shows
        yield _case(f"n = {n}{names.get(n, '')}", n, first, density=0.15, connected=True)
    n = around[-1]
    yield _case(f"n = {n}, unreachable pairs", n, first, density=0.08)
    yield _case(f"n = {n}, one cycle through all vertices", n, first, density=0.0, connected=True)
    signed = next((dtype for dtype in kernel.dtypes if dtype != "int16"), None)
    if signed is not None:
        yield _case(f"n = {n}, negative weights", n, signed, negative=0.4)
        yield _case(f"n = {n}, a negative cycle", n, signed, low=-3, high=5, density=0.6)
    for dtype in others:
        yield _case(f"n = {side + 1}, {dtype}", min(side + 1, n), dtype)
        yield _case(f"n = {n}, unreachable pairs, {dtype}", n, dtype, density=0.08)
    for n in asked:
        if n <= most:
            yield _case(f"n = {n}", n, first)


def tile_of(kernel: Kernel, simulated: bool) -> int:
    """The tile that a kernel is tried with unless asked otherwise: its own, and in the simulator a small one."""
    small = next((tile for tile in kernel.tiles_for(True) if tile >= SIMULATED_SIDE), 0)
    return (small if simulated and small else kernel.tile_for(0, simulated)) or 1


def _case(name: str, n: int, dtype: str, **graph: object) -> Case:
    return Case(name, Experiment(n=n, dtype=dtype, **graph))  # type: ignore[arg-type]
