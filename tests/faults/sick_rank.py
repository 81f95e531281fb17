"""A rank that fails as SICK_RANK says: "1 memory" has rank 1 raise MemoryError where a run allocates."""

from __future__ import annotations

import os

from fwtui.engine.ranks import Share
from fwtui.measure.rank_job import main

RANK, ERROR = os.environ["SICK_RANK"].split()
ERRORS = {"memory": MemoryError("no more"), "error": ValueError("a bug")}


healthy = Share.allocate


def allocate(self: Share) -> None:
    if self.rank == int(RANK):
        raise ERRORS[ERROR]
    healthy(self)


if __name__ == "__main__":
    Share.allocate = allocate
    main()
