"""What stands for a choice left to the program in the list of kernels, and the order in which it picks without measurements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from kernels import registry
from kernels.plan import DTYPES, Kernel, Program, Shape, Step, Target


def in_order(backend: str, dtype: str) -> list[Kernel]:
    """The kernels that are picked from where nothing was measured, the best known first."""
    known = [k for k in registry().values() if k.preference and k.backend == backend and dtype in k.dtypes]
    return sorted(known, key=lambda kernel: -kernel.preference)


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
