from fwtui.common.errors import Refused as Refused
from fwtui.solver.like_scipy import shortest_path as shortest_path
from fwtui.solver.result import Result as Result
from fwtui.solver.result import StackResult as StackResult
from fwtui.solver.solve import solve as solve

__version__: str
