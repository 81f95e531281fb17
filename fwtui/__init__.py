"""Run, explain and replay Floyd-Warshall kernels (`run`, `load`), and compute all-pairs shortest paths (`solve`)."""

from importlib import import_module
from typing import Any

from fwtui.common.version import __version__

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
# imported on first use, because they import NumPy, which slows down the command line
_LATER = {
    "run": "fwtui.commands.api.running",
    "load": "fwtui.commands.api.session",
    "kernels": "fwtui.commands.api.session",
    "Session": "fwtui.commands.api.session",
    "solve": "fwtui.solver.solve",
    "shortest_path": "fwtui.solver.scipy_interface",
    "Result": "fwtui.solver.result",
    "Refused": "fwtui.common.errors",
    "Failed": "fwtui.common.errors",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name == "sessions":  # a package that can be called
        return import_module("fwtui.sessions")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
