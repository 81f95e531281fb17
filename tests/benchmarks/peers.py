"""Time kernels and public packages on one graph, in turns A B C A B C, and verify the distances of every turn. Run by hand.

python tests/benchmarks/peers.py [-n 1024,4096] [--dtype float32] [-k look-ahead,tiled-cpu] [--rounds 3]

Without -k: the three best kernels of this machine's GPU and the best one of its CPU. Packages: SciPy, and NumPy, NetworkX,
PyTorch (GPU) and CuPy if they are installed. SciPy and NetworkX compute in float64. Copies to and from the GPU are not timed.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from fwtui.commands.support.printing import table
from fwtui.common import units
from fwtui.engine.engine_for import engine_for
from fwtui.engine.kernel_instance import load_kernel
from fwtui.engine.verify import Verifier
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import FULL_CHECK, Experiment, changed
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import canonical
from fwtui.graphs.graph import GraphInput
from fwtui.machine import hardware
from fwtui.machine.device_choice import settle_here
from fwtui.measure.inputs import fill_for
from fwtui_kernels import registry
from fwtui_kernels.auto import in_order
from fwtui_kernels.plan import NO_EDGE

TURN_SECONDS, MAX_REPETITIONS = 1.0, 50  # of one turn
GPU = hardware.gpu_present()
MAX_N = {"scipy": 2048, "numpy": 2048, "networkx": 1024}  # for a larger n a repetition takes a minute or more


class Entrant(NamedTuple):
    """A kernel or a package with a graph: `run` does one repetition and returns its seconds, `result` returns the matrix."""

    name: str
    run: Callable[[], float]
    result: Callable[[], Any]


def repetition(relax: Callable[[Any], object], work: Any, source: Any, wait: Callable[[], object]) -> Callable[[], float]:
    """Return a function that restores the input, waits for the device, and returns the seconds of `relax`."""

    def run() -> float:
        work[:] = source
        wait()
        begin = time.perf_counter()
        relax(work)
        wait()
        return time.perf_counter() - begin

    return run


def two_calls(package: Any, sums: Any) -> Callable[[Any], None]:
    """Return the k-loop of a package that has NumPy's functions, without an allocation in the loop."""

    def relax(matrix: Any) -> None:
        for k in range(len(matrix)):
            package.add(matrix[:, k, None], matrix[k], out=sums)
            package.minimum(matrix, sums, out=matrix)

    return relax


def with_numpy(graph: GraphInput) -> Entrant:
    work, sums = np.empty_like(graph.matrix), np.empty_like(graph.matrix)
    return Entrant("NumPy", repetition(two_calls(np, sums), work, graph.matrix, lambda: None), lambda: work)


def with_torch(graph: GraphInput) -> Entrant:
    import torch  # pyright: ignore[reportMissingImports]

    source = torch.from_numpy(graph.matrix).to("cuda")
    work, relax = torch.empty_like(source), two_calls(torch, torch.empty_like(source))
    return Entrant("PyTorch", repetition(relax, work, source, torch.cuda.synchronize), lambda: work.cpu().numpy())


def with_cupy(graph: GraphInput) -> Entrant:
    import cupy  # pyright: ignore[reportMissingImports]

    # row k and column k do not change in step k, so no thread reads what another writes
    fused = cupy.ElementwiseKernel("T to, T onward", "T distance", "distance = min(distance, T(to + onward))", "relax")
    source = cupy.asarray(graph.matrix)
    work = cupy.empty_like(source)
    relax = lambda matrix: [fused(matrix[:, k, None], matrix[k], matrix) for k in range(len(matrix))]  # noqa: E731
    return Entrant("CuPy", repetition(relax, work, source, cupy.cuda.Device().synchronize), lambda: cupy.asnumpy(work))


def with_networkx(graph: GraphInput) -> Entrant:
    import networkx as nx

    edges, found = nx.DiGraph(), list[Any]()
    edges.add_nodes_from(range(graph.n))
    rows, columns = np.nonzero(graph.matrix != NO_EDGE[graph.dtype])
    edges.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), graph.matrix[rows, columns].tolist(), strict=True))
    run = repetition(lambda _: found.__setitem__(slice(None), [nx.floyd_warshall_numpy(edges)]), [], [], lambda: None)
    return Entrant("NetworkX", run, lambda: np.minimum(found[0], NO_EDGE[graph.dtype]).astype(graph.dtype))


PACKAGES = {"numpy": with_numpy, "networkx": with_networkx} | ({"torch": with_torch, "cupy": with_cupy} if GPU else {})


def compare(n: int, dtype: str, names: list[str], rounds: int) -> bool:
    """Time all entrants in turns on one graph and print a table; return True if every turn of each has right distances."""
    experiment, verifier, entrants = Experiment(n=n, dtype=dtype), Verifier(), list[Entrant]()
    graph, turns, wrong = generate(experiment, fill_for(engine_for(CPU), n)), defaultdict[str, list[float]](list), set[str]()
    with ExitStack() as held:
        for name in [name for name in names if n <= MAX_N.get(name, n)]:
            settled = settle_here(changed(experiment, kernel=name))
            shape, engine = settled.shape(n, graph.nonnegative), engine_for(settled.runs_on)
            it = held.enter_context(load_kernel(registry()[settled.kernel], shape, engine, graph.matrix))
            entrants.append(Entrant(name, it.run, it.result))
        entrants += [make(graph) for name, make in PACKAGES.items() if find_spec(name) and n <= MAX_N.get(name, n)]
        for one in entrants * 2:  # the first repetition compiles, the second one captures a CUDA graph
            one.run()
        for one in entrants * rounds:
            times = [one.run()]
            while sum(times) < TURN_SECONDS and len(times) < MAX_REPETITIONS:
                times.append(one.run())
            turns[one.name].append(median(times))
            found = verifier.check(graph, n, canonical(one.result(), graph, dtype), "auto", FULL_CHECK["cuda"], one.name)
            wrong |= {one.name} if found.verdict != "verified" else set()
    rows: list[tuple[str, ...]] = [(f"n = {n}", "median", "turns", "rate")]
    for name, medians in sorted(turns.items(), key=lambda item: median(item[1])):
        seconds, spread = median(medians), (max(medians) - min(medians)) / 2 / median(medians)
        label = f"{name}: INCORRECT" if name in wrong else name
        rows.append((label, units.duration(seconds), units.spread(spread), units.rate(n**3 / seconds)))
    print("\n".join([*table(rows), ""]))
    return not wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("-n", "1024"), ("--dtype", "float32"), ("-k", ""), ("--rounds", 3)):
        parser.add_argument(option, default=default, type=type(default))
    args = parser.parse_args()
    best = [*(in_order("cuda", args.dtype)[:3] if GPU else ()), *in_order("cpu", args.dtype)[:1]]
    wanted = [*(args.k.split(",") if args.k else [kernel.id for kernel in best]), "scipy"]
    sys.exit(not all(compare(int(n), args.dtype, wanted, args.rounds) for n in args.n.split(",")))
