"""`python -P -m fwtui.graphs EXPERIMENT FILE`: make the graph of an experiment (JSON), save it, or print it if FILE is empty."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from fwtui.errors import Refused
from fwtui.experiment import SIMULATOR_MAX_N, Experiment
from fwtui.graphs.files import read
from fwtui.graphs.generate import generate, warm_up
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.room import check_room
from fwtui.graphs.whole import check_place
from fwtui.graphs.writers import check_small, check_suffix, check_whole, picture, write
from fwtui.text import clean
from fwtui.units import duration, memory


def save(experiment: Experiment, out: str) -> None:
    """Raises Refused where the graph cannot be made, saved or shown."""
    if out:
        check_suffix(out)
        check_place(out, experiment.file)
        if experiment.real and not experiment.file:
            check_whole(Path(out), False)
        if not experiment.file:
            check_room(experiment, Path(out))
    elif not experiment.file:
        check_small(experiment.n, SIMULATOR_MAX_N)
    if not experiment.file:
        warm_up(experiment)
    begin = time.perf_counter()
    graph = read(experiment.file, experiment.dtype) if experiment.file else generate(experiment)
    made = time.perf_counter()
    if not out:
        print("\n".join(picture(graph, SIMULATOR_MAX_N)))
        return
    size = write(graph, out)
    wrote = duration(time.perf_counter() - made)
    way = "read" if experiment.file else "generated"
    print(
        f"fwtui: {clean(Path(out).name)}: {words(graph)}; {way} in {duration(made - begin)}, {memory(size)} written in {wrote}",
        file=sys.stderr,
    )


def words(graph: GraphInput) -> str:
    """Its size and weights."""
    weights = f", weights {graph.low:g}..{graph.high:g}" if graph.low is not None and graph.high is not None else ""
    return f"{graph.n:,} vertices, {graph.edges:,} edges{weights}"


def main() -> int:
    try:
        save(msgspec.json.decode(sys.argv[1], type=Experiment), sys.argv[2])
        sys.stdout.flush()
    except Refused as refusal:
        print(f"fwtui: {refusal}", file=sys.stderr)
        return 2  # as the command line says it
    except MemoryError:
        print("fwtui: the graph does not fit into memory; choose a smaller n", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # whoever read us has gone; the interpreter's own last flush would say so again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
