from fwtui.common.errors import Failed, Refused
from fwtui.solver.like_scipy import shortest_path
from fwtui.solver.result import Result
from fwtui.solver.solve import solve

__all__ = ["Failed", "Refused", "Result", "__version__", "shortest_path", "solve"]
__version__: str

def __dir__() -> list[str]: ...
