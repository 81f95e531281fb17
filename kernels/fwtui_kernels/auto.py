"""The entry `auto` in the list of kernels, and the order of its choice without measurements."""

from __future__ import annotations

from typing import NoReturn

from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Shape


def in_order(backend: str, dtype: str) -> list[Kernel]:
    """The kernels to choose from without measurements, best known first."""
    candidates = [k for k in registry().values() if k.preference and k.backend == backend and dtype in k.dtypes]
    return sorted(candidates, key=lambda kernel: -kernel.preference)


def _nothing(shape: Shape, other: object) -> NoReturn:
    raise ValueError("auto is not a kernel: a real one is put in its place before anything runs")


AUTO = Kernel(
    id="auto",
    title="Auto",
    backend="any",
    papers=(),
    phases={},
    plan=_nothing,
    build=_nothing,
    summary="The fastest kernel, tile, options and launch mode measured here (fwtui tune), or the best known rung.",
    lesson="",
    launch_modes=("auto",),
)
