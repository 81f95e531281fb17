"""A rank that fails: rank 1 raises MemoryError where a run allocates."""

from fwtui.engine.ranks import Allocate, RankWork
from fwtui.measure.rank_main import main

healthy = Allocate.done_by


def sick(order: Allocate, work: RankWork) -> None:
    if work.rank == 1:
        raise MemoryError("no more")
    healthy(order, work)


if __name__ == "__main__":
    Allocate.done_by = sick  # type: ignore[method-assign]
    main()
