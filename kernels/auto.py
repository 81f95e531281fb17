"""What stands for a choice left to the program in the list of kernels, and the order in which it picks without measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn

from kernels import registry
from kernels.plan import DTYPES, Kernel, Program, Shape, Step, Target


class Rung(NamedTuple):
    """A kernel, and the greatest size at which it is thought to be the best; None: there is none."""

    kernel: str
    most: int | None = None


# the best known first; one that does not take a size, number type or GPU is passed over
BEST: Mapping[str, tuple[Rung, ...]] = {
    # up to about a thousand vertices a round's arithmetic takes less time than a launch
    "cuda": (
        Rung("resident", 1024),
        *(Rung("look-ahead"), Rung("register-tiled"), Rung("blocked-vector"), Rung("staged-load"), Rung("katz-kider")),
        Rung("naive"),
    ),
    "cpu": (Rung("tiled-cpu"), Rung("serial")),
}


def in_order(backend: str, dtype: str, n: int = 1) -> list[Kernel]:
    """The kernels that are picked from where nothing was measured, the best known for that size first."""
    ladder = registry()
    return [ladder[rung.kernel] for rung in BEST[backend] if n <= (rung.most or n) and dtype in ladder[rung.kernel].dtypes]


def _plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    _nothing()


def _build(shape: Shape, target: Target) -> Program:
    _nothing()


def _nothing() -> NoReturn:
    raise ValueError("auto is not a kernel: a real one is put in its place before anything runs")


AUTO = Kernel(
    id="auto",
    title="Auto",
    backend="any",
    papers=(),
    phases={},
    plan=_plan,
    build=_build,
    summary="The fastest kernel, tile, options and launch mode measured here (fwtui tune), or the best known rung.",
    lesson="",
    dtypes=DTYPES,
    launch_modes=("auto",),
)
