"""Sessions made by hand, run by run, for sweeps and claims."""

from functools import partial
from typing import Any, Self

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
    """An experiment; names that are not its fields are the kernel's options."""
    fields = {name: value for name, value in more.items() if name in Experiment.__struct_fields__}
    options = {name: value for name, value in more.items() if name not in fields}
    return Experiment(kernel=kernel, n=n, dtype=dtype, options=options, **fields)


class Made:
    """A session made by hand, run by run."""

    def __init__(self, gpu: events.Device | None = GPU):
        self.model = Model()
        self.began = 1.0  # of the runs that are added
        if gpu is not None:
            self.model.apply(gpu)

    def add(
        self,
        wanted: Experiment,
        seconds: float | None = 1.0,
        *,
        copies: float = 0.0,
        phases: dict[str, float] | None = None,
        verdict: str = "verified",
        outcome: str = "done",
        message: str = "",
        spread: float = 0.001,
        stages: dict[str, float] | None = None,
        counters: dict[str, float] | None = None,
        op: str = "rest",
        edges: int | None = None,
        device_bytes: int = 0,
        shared: int | None = None,
        simulated: bool = False,
        passes: int = 0,
    ) -> Self:
        kernel = registry()[wanted.kernel]
        run, n = len(self.model.runs) + 1, wanted.n
        tile = kernel.tile_for(0 if wanted.file else n, simulated)
        modes = ("eager",) if simulated else kernel.launch_modes
        told: list[events.Event] = [
            events.RunStarted(
                t=self.began,
                run=run,
                experiment=changed(wanted, tile=wanted.tile or tile, launch=wanted.launch or modes[-1]),
                title=kernel.title,
                backend="simulator" if simulated else kernel.backend,
                phases=tuple(events.PhaseName(key, words) for key, words in kernel.phases.items()),
            ),
            events.Planned(t=1.0, run=run, n=n, padded=n, steps=n, relaxations=n**3, device_bytes=device_bytes),
        ]
        for name, took in {"load": copies / 2, "unload": copies / 2, **(stages or {})}.items():
            told.append(events.Stage(t=1.0, run=run, name=name, seconds=took))
        for place in range(passes):
            told.append(events.Sample(t=1.0, run=run, seconds=(seconds or 0.0) * (1 + 0.001 * place), since=1.0))
        if edges is not None:
            told.append(events.Graph(t=1.0, run=run, vertices=n, edges=edges))
        if phases is not None:
            parts = [events.Part(phase=k, seconds=s, launches=1, relaxations=1, device_bytes=1) for k, s in phases.items()]
            told.append(events.Phases(t=1.0, run=run, seconds=sum(phases.values()), parts=tuple(parts)))
        if shared is not None:
            fields: dict[str, Any] = {"threads": 64, "registers": 40, "blocks": 20, "warps": 40, "max_warps": 64}
            told.append(
                events.Occupancy(t=1.0, run=run, op=op, shared_bytes=shared, limiters=("registers",), source="driver", **fields)
            )
        if counters is not None:
            told.append(events.Counters(t=1.0, run=run, op=op, values=counters))
        if outcome == "done":
            told.append(events.Verdict(t=1.0, run=run, verdict=verdict, how="so it is"))
        told.append(
            events.RunDone(t=2.0, run=run, outcome=outcome, message=message, median=None if simulated else seconds, spread=spread)
        )
        for event in told:
            self.model.apply(event)
        return self

    def answer(self, claim: str, *others: Model) -> Answer:
        """The answer of this session to the claim with that id."""
        return evaluate(CLAIMS[claim][0], Evidence(self.model, CLAIMS[claim][1].dtype, others))


int32 = partial(ask, dtype="int32")
int16 = partial(ask, dtype="int16")


class MadeLive:
    """What campaigns need of a live session, with nothing behind it: a run is over at once.

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

    def start(self, experiment: Settled, brief: bool = False) -> int:
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
