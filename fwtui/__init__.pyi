import os
from collections.abc import Iterable, Mapping

from fwtui.commands.api.session import Session, kernels, load
from fwtui.common.errors import Failed, Refused
from fwtui.solver.result import Result
from fwtui.solver.scipy_interface import shortest_path
from fwtui.solver.solve import solve

__all__ = [
    "Failed",
    "Refused",
    "Result",
    "Session",
    "__version__",
    "kernels",
    "load",
    "run",
    "sessions",
    "shortest_path",
    "solve",
]
__version__: str

def run(
    kernel: str | os.PathLike[str] | Iterable[str] | None = None,
    n: int | str | Iterable[int] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    weight: str | None = None,
    no_edge: float | str | None = None,
    undirected: bool | None = None,
    kind: str | Iterable[str] | None = None,
    density: float | str | Iterable[float] | None = None,
    weights: str | None = None,
    real: bool | None = None,
    negative: float | str | None = None,
    connected: bool | None = None,
    exact: bool | None = None,
    seed: int | None = None,
    dtype: str | Iterable[str] | None = None,
    tile: int | str | Iterable[int] | None = None,
    launch: str | Iterable[str] | None = None,
    memory: str | None = None,
    repeats: int | str | None = None,
    budget: float | None = None,
    verify: str | None = None,
    device: int | str | None = None,
    devices: str | Iterable[int | str] | None = None,
    option: Mapping[str, int | str] | None = None,
    trust: bool = False,
    all: bool = False,
    baseline: str | None = None,
    counters: bool = False,
    record: bool | str | os.PathLike[str] = False,
    title: str | None = None,
    telemetry_hz: float | None = None,
    record_source: bool = False,
    samples: str | None = None,
    **kernel_options: int | str,
) -> Session:
    """Run experiments, one after the other, and return their session; `budget` is in seconds, `telemetry_hz` in hertz."""

def sessions() -> dict[str, str]:
    """Return the names of all sessions, newest first, each with its title; `fwtui.load` takes them."""

def __dir__() -> list[str]: ...
