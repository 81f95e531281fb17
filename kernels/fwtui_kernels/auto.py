"""The entry `auto` in the list of kernels, and its order of choice."""

from __future__ import annotations

from typing import NoReturn

from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Shape


def in_order(backend: str, dtype: str) -> list[Kernel]:
    """Return the kernels that `auto` may choose, by descending preference."""
    candidates = [k for k in registry().values() if k.preference and k.backend == backend and dtype in k.dtypes]
    return sorted(candidates, key=lambda kernel: -kernel.preference)


def _nothing(shape: Shape, other: object) -> NoReturn:
    raise ValueError("auto cannot run: it must be replaced by a kernel first")


AUTO = Kernel(
    id="auto",
    title="Auto",
    backend="any",
    papers=(),
    phases={},
    plan=_nothing,
    build=_nothing,
    summary="The best known rung for this device, size and data type.",
    lesson="",
    launch_modes=("auto",),
)
