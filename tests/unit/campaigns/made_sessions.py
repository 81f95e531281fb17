"""Made-up sessions for sweeps and claims."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Self

from builders import SessionBuilder, occupancy

from fwtui.campaigns.claims import Answer, evaluate, papers
from fwtui.campaigns.evidence import Evidence, label
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, Settled, changed, settle
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry

GPU = events.Device(
    t=0.0,
    name="a GPU",
    compute_capability=(9, 0),
    multiprocessors=132,
    memory_bytes=140 * 2**30,
    peak_bytes_per_second=4.8e12,
    max_clock_mhz=1980.0,
)

CLAIMS = {claim.id: (claim, paper) for paper in papers().values() for claim in paper.claim}


def ask(kernel: str, n: int, dtype: str = "float32", **more: Any) -> Experiment:
    """Return an experiment; names that are not its fields are options of the kernel."""
    fields = {name: value for name, value in more.items() if name in Experiment.__struct_fields__}
    options = {name: value for name, value in more.items() if name not in fields}
    return Experiment(kernel=kernel, n=n, dtype=dtype, options=options, **fields)


def halves(copies: float) -> dict[str, float]:
    return {"load": copies / 2, "unload": copies / 2}


class Made(SessionBuilder):
    """A session of made-up runs of a campaign."""

    def __init__(self, gpu: events.Device | None = GPU):
        super().__init__(*([] if gpu is None else [gpu]))

    def add(
        self,
        wanted: Experiment,
        seconds: float | None = 1.0,
        *,
        copies: float = 0.0,
        edges: int | None = None,
        shared: int | None = None,
        stages: Mapping[str, float] = MappingProxyType({}),
        passes: int = 0,
        **facts: Any,
    ) -> Self:
        """Add a run; `facts` are arguments of `run_events`, and `passes` a number of nearly equal repetitions."""
        kernel, n = registry()[wanted.kernel], wanted.n
        e = changed(wanted, tile=wanted.tile or kernel.tile_for(n), launch=wanted.launch or kernel.launch_modes[-1])
        told: list[events.Event] = []
        if edges is not None:
            told.append(events.Graph(t=1.0, run=1, vertices=n, edges=edges))
        if shared is not None:
            told.append(occupancy(threads=64, shared_bytes=shared, blocks=20, warps=40, limiters=("registers",)))
        taken = [(seconds or 0.0) * (1 + 0.001 * place) for place in range(passes)]
        on = {"title": kernel.title, "backend": kernel.backend, "device_bytes": 0, "stages": {**halves(copies), **stages}}
        self.run(e, *told, passes=taken, seconds=seconds, **(on | facts))
        return self

    def answer(self, claim: str, *others: Model) -> Answer:
        """Evaluate the claim with that id in this session."""
        return evaluate(CLAIMS[claim][0], Evidence(self.model, CLAIMS[claim][1].dtype, others))


int32 = partial(ask, dtype="int32")
int16 = partial(ask, dtype="int16")


class MadeLive:
    """A live session for campaigns whose runs end at once.

    It takes as long as its size suggests, or is as `run` says (Made.add()); `why`: why none can begin.
    """

    def __init__(self, made: Made | None = None, why: str = "", **run: Any):
        self.made, self.why, self.run = made or Made(), why, run
        self.model, self.busy, self.now = self.made.model, False, 0.0
        self.started: list[Settled] = []
        self.refused: list[str] = []

    def mark(self, text: str) -> None:
        self.model.apply(events.Marker(t=0.0, text=text))

    def settled(self, experiment: Experiment) -> Settled:
        try:
            return settle(experiment, experiment.device_id.simulated)
        except Refused as refusal:
            self.refused.append(f"{label(experiment)}: {refusal}")
            raise

    def start(self, experiment: Settled) -> int:
        if self.why:
            raise Refused(self.why)
        self.started.append(experiment)
        per_cell, least = (1e-9, 0.0) if registry()[experiment.kernel].backend == "cpu" else (1e-12, 0.001)
        if not self.run.get("dies"):
            self.made.add(experiment, **(self.run or {"seconds": least + per_cell * experiment.n**3}))
        return len(self.model.runs)

    def drain(self) -> int:
        return 0

    def cancel(self) -> None:
        raise AssertionError("no run goes on for long enough to be cancelled")
