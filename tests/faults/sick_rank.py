"""A rank that fails as SICK_RANK says: "1 memory" has rank 1 raise MemoryError where a run allocates."""

from __future__ import annotations

import os

from fwtui.engine.ranks import Allocate, RankWork
from fwtui.measure.rank_job import main

RANK, ERROR = os.environ["SICK_RANK"].split()
ERRORS = {"memory": MemoryError("no more"), "error": ValueError("a bug")}
healthy = Allocate.done_by


def sick(order: Allocate, work: RankWork) -> None:
    if work.rank == int(RANK):
        raise ERRORS[ERROR]
    healthy(order, work)


if __name__ == "__main__":
    Allocate.done_by = sick  # type: ignore[method-assign]
    main()
