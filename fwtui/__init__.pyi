from fwtui.errors import Refused as Refused
from fwtui.solving.result import Result as Result
from fwtui.solving.solver import solve as solve

__version__: str
