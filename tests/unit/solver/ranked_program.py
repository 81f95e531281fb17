"""An MPI program: each rank solves the graphs that rank 0 has, and rank 0 writes what all of them got."""

import pickle
import sys
from typing import Any

from mpi4py import MPI

from fwtui import solve

comm = MPI.COMM_WORLD


def solved(graph: Any, **given: Any) -> dict[str, Any]:
    """Return this rank's part of the answer, or its error."""
    try:
        result = solve(graph if comm.rank == 0 else None, comm=comm, **given)
    except Exception as error:
        return {"error": (type(error).__name__, str(error))}
    path = result.path(0, result.stats.n - 1) if comm.rank == 0 and given["predecessors"] else []
    found = {"rows": result.rows, "distances": result.distances, "predecessors": result.predecessors}
    return {**found, "path": path, "stats": result.stats, "names": list(result.vertices.labels)}


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        asked = pickle.load(file)  # noqa: S301 the test's own
    found = [comm.gather(solved(graph, device="cpu", **given)) for graph, given in asked]
    if comm.rank == 0:
        with open(sys.argv[2], "wb") as file:
            pickle.dump(found, file)


if __name__ == "__main__":
    main()
