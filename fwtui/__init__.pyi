from fwtui.api.running import run
from fwtui.api.session import Session, kernels, load
from fwtui.common.errors import Failed, Refused
from fwtui.solver.like_scipy import shortest_path
from fwtui.solver.result import Result
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

def sessions() -> dict[str, str]:
    """Return the names of all sessions, newest first, each with its title; `fwtui.load` takes them."""

def __dir__() -> list[str]: ...
