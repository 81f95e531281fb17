"""A rank that fails: rank 1 raises MemoryError where a run allocates."""

from fwtui.engine.distributed_engine import Allocate, RankState
from fwtui.measure.rank_main import main

healthy = Allocate.execute


def sick(order: Allocate, work: RankState) -> None:
    if work.rank == 1:
        raise MemoryError("no more")
    healthy(order, work)


if __name__ == "__main__":
    Allocate.execute = sick  # type: ignore[method-assign]
    main()
