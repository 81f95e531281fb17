"""What a judge of submissions is asked and what it answers, and what it says to the process that runs one: JSON lines."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fwtui.common.container import Container
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment

MOST_TILE = 1024  # of a kernel that is graded, whose graphs have two tiles a side


class SubmissionLimits(Struct, frozen=True, kw_only=True):
    """What a submission may take."""

    seconds: Annotated[float, Meta(ge=0.5, le=3600, description="a number of seconds from 0.5 to 3600")] = 20.0  # for one graph
    memory: Annotated[float, Meta(ge=0.25, le=1024, description="a number of GiB from 0.25 to 1024")] = 4.0
    output: Annotated[int, Meta(ge=1, le=65536, description="a whole number of KiB from 1 to 65536")] = 64  # that it may print


class SubmissionRequest(Struct, frozen=True, kw_only=True, tag="load", tag_field="ask"):
    """Load this: a user's file, or the rung that its time is compared with."""

    path: str = ""
    rung: str = ""
    device: DeviceId = DeviceId()
    folder: str = ""  # where it works; empty: where it is
    others: tuple[str, ...] = ()  # files that it must not open: those of other submissions


class Ask(Struct, frozen=True, tag="compute", tag_field="ask"):
    """Compute the distances of the graph whose matrix, n x n, is in this file."""

    n: int
    dtype: str
    nonnegative: bool
    graph: str
    half: Literal["", "first", "last"] = ""  # of the steps of its plan, and no others
    watched: bool = False  # whether it is looked at access by access, where GPUs are simulated


class SubmissionReply(Struct, frozen=True, kw_only=True):
    """What came of loading or computing. If it is `computed`, n x n numbers follow."""

    wrong: str = ""  # the kernel failed, and its process ends
    refused: str = ""  # it does not take such a graph
    backend: Literal["", "cpu", "cuda"] = ""  # this and what follows: of loading
    simulates: bool = True  # whether the simulator runs it
    dtypes: tuple[Literal["float32", "int32", "int16"], ...] = ()
    tile: Annotated[int, Meta(ge=1, le=MOST_TILE)] = 1
    max_n: Annotated[int, Meta(ge=1)] = 1
    plan: str = ""  # what is wrong with it
    computed: bool = False  # this and what follows: of computing
    seconds: float = 0.0  # of the pass, by the clock of its own process
    rungs: tuple[str, ...] = ()  # kernels of this program that a user's file has imported
    misuse: tuple[str, str] = ("", "")  # what threads did that they must not: the outcome, and in words


class JudgeRequest(Struct, frozen=True, kw_only=True):
    """Try the file on these graphs, kind by kind; or find its time on graphs like one, turn by turn with a rung's."""

    path: str
    device: DeviceId
    limits: SubmissionLimits
    kinds: tuple[tuple[Experiment, ...], ...] = ()
    timed: Experiment | None = None  # its kernel is the rung
    container: Container | None = None  # in which all of it runs
    others: tuple[str, ...] = ()  # files of other submissions


class GradedGraph(Struct, frozen=True):
    """What came of one graph; None in `right`: it could not be tried on this device."""

    right: bool | None
    sentence: str = ""
    races: bool = False


class Judgement(Struct, frozen=True, kw_only=True):
    """What came of a submission."""

    kinds: tuple[tuple[GradedGraph, ...], ...] = ()
    foul: str = ""  # why nothing counts
    simulated: bool = False
    backend: str = ""
    rungs: tuple[str, ...] = ()  # kernels of this program that it imports
    unlike_watch: str = ""  # what `fwtui watch` does not call right of it
    seconds: float | None = None  # of one pass, by the clock that counts
    own_seconds: float | None = None  # by the clock of its own process
    rung_seconds: float | None = None
    untimed: str = ""  # why there is no time
