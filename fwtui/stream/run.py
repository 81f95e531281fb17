"""A run as its events have described it so far: immutable, replaced by each event."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import zip_longest
from math import inf, isfinite
from statistics import median
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import GENERATED, Experiment, changed, identity
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.listing import LINE_UNITS, Listing, listing_of
from fwtui.stream.stages import ENOUGH_PASSES, ENOUGH_SECONDS
from fwtui_kernels.plan import Kernel

T = TypeVar("T")
P = TypeVar("P", events.Phases, events.RankPhases)
OfOp = TypeVar("OfOp", events.Counters, events.WarpSamples, events.CpuLoop)
WRONG = ("wrong", "out of range")
MAX_GATHERED = events.MAX_RANKS  # events of one kind that a run retains
MAX_PLANS = 64  # parts of a plan: twice as many as in the longest recorded plan
MAX_PHASES = 32  # phases of an instrumented repetition
MAX_OPS = 16  # ops of a run that have counters or samples
BROADCAST, WAIT = "broadcast", "wait"  # keys of the phases in which ranks broadcast a panel and wait for it
PLANNED = ("n", "padded", "steps", "relaxations", "device_bytes")  # fields that Planned and Run share
LATEST = {
    events.Ordered: "ordered",
    events.Progress: "progress",
    events.Graph: "graph",
    events.Verdict: "verdict",
    events.Sampled: "sampled",
    events.CpuUse: "cpu",
}
GATHERED = {events.Stage: "stages", events.Sample: "samples", events.Round: "rounds", events.Occupancy: "occupancies"}
GATHERED |= {events.Plan: "plan", events.Source: "source", events.RankPhases: "rank_phases"}
BY_OP = {events.Counters: "counted", events.WarpSamples: "warps", events.CpuLoop: "loops"}
# fields that an old run loses; they are only in the session file
DETAILS = {**dict.fromkeys(("samples", "rounds", "plan", "code"), ()), "stage_since": 0.0, "ordered": None}


def of_phase(by_op: Iterable[OfOp], phase: str) -> OfOp | None:
    """Return the event of the phase's kernel function, else the only event; None if there are several others, or none."""
    ops = {one.op: one for one in by_op}
    return ops.get(phase) or (next(iter(ops.values())) if len(ops) == 1 else None)


class PhaseTime(NamedTuple):
    """A phase of the instrumented repetition, with its title."""

    key: str
    title: str
    seconds: float
    share: float
    launches: int
    relaxations: int
    device_bytes: int
    link_bytes: int = 0
    cpu_seconds: float = 0.0  # CPU time of all cores; 0: not measured


class Evidence(NamedTuple):
    """Telemetry during a run's timed repetitions; None if no sample was taken entirely within them."""

    readings: int
    power_watts: float | None
    gpu_clock_mhz: float | None
    sm_occupancy: float | None
    dram_utilisation: float | None
    throttle: int
    integer_utilisation: float | None = None
    other_cpu: float | None = None  # share of the CPU used by other programs
    cores: int | None = None  # number of CPU cores
    cpu: float | None = None  # share of the CPU that was busy
    cpu_clock_mhz: float | None = None


class SampledCode(NamedTuple):
    """Samples of an op's lines and instructions; all runs of that code share the text."""

    samples: events.CodeSamples
    text: events.CodeText


class Run(Struct, frozen=True, kw_only=True, dict=True):
    """A run. Its state is "running", then the outcome of RunDone. Sizes are 0 until the run is planned."""

    id: int
    started: float
    experiment: Experiment
    title: str
    device: DeviceId  # the device that computes the run
    phase_names: tuple[events.PhaseName, ...]
    n: int
    padded: int = 0
    steps: int = 0
    relaxations: int = 0  # relaxations of the padded matrix
    device_bytes: int = 0
    state: str = "running"
    stage: str = ""
    stages: tuple[events.Stage, ...] = ()  # finished ones
    progress: events.Progress | None = None
    graph: events.Graph | None = None
    ordered: events.Ordered | None = None  # elimination order of a kernel for sparse graphs
    samples: tuple[events.Sample, ...] = ()
    instrumented_repetition: events.Phases | None = None
    rounds: tuple[events.Round, ...] = ()
    ranks: tuple[events.RankOf, ...] = ()  # ranks that share the matrix, if there are several
    rank_phases: tuple[events.RankPhases, ...] = ()  # the instrumented repetition of each rank
    occupancies: tuple[events.Occupancy, ...] = ()
    plan: tuple[events.Plan, ...] = ()  # only of a user kernel
    source: tuple[events.Source, ...] = ()  # source of a user kernel, if it was recorded
    counted: tuple[events.Counters, ...] = ()  # one for each op, if requested
    warps: tuple[events.WarpSamples, ...] = ()  # one for each op that was sampled
    code: tuple[tuple[str, SampledCode], ...] = ()  # of each op
    sampled: events.Sampled | None = None
    cpu: events.CpuUse | None = None
    loops: tuple[events.CpuLoop, ...] = ()  # one for each op
    verdict: events.Verdict | None = None
    done: events.RunDone | None = None
    finished: float | None = None
    stage_since: float = 0.0  # session time at which the present stage began
    fault: events.Fault | None = None  # the error that ended the run, if any
    evidence: Evidence | None = None  # only of an old run, whose telemetry is thinned out
    old: bool = False  # whether its DETAILS are only in the session file

    @property
    def backend(self) -> str:
        return self.device.backend

    @property
    def simulated(self) -> bool:
        return self.device.simulated

    @property
    def verified(self) -> bool | None:
        """True or False if known; None if not (yet) checked, or without distances to check."""
        if self.verdict is None or self.verdict.verdict in ("unverified", "negative cycle"):
            return None
        return self.verdict.verdict == "verified"

    @property
    def counts(self) -> bool:
        """Return True if the time of the run may be used: the run is done, verified and timed."""
        return bool(self.state == "done" and self.verified and self.seconds)

    @property
    def wrong(self) -> bool:
        return self.verdict is not None and self.verdict.verdict in WRONG

    @property
    def seconds(self) -> float | None:
        """Median time of the timed repetitions in seconds; provisional while they run."""
        if self.simulated:
            return None
        if self.done is not None:
            return self.done.median
        return median(s.seconds for s in self.samples) if self.samples else None

    @property
    def passes(self) -> tuple[float, ...]:
        """Seconds of timed repetitions, spread over the whole run; all of them if they are few."""
        return (self.done.passes if self.done is not None else ()) or tuple(s.seconds for s in self.samples)

    @property
    def rate(self) -> float | None:
        """Relaxations per second: `needed` / median time."""
        return _per_second(self.needed, self.seconds)

    @property
    def needed(self) -> int:
        """The relaxations of the user's graph, without padding; for a sparse one those that its plan leaves."""
        return min(self.n**3, self.relaxations or self.n**3)

    @property
    def bandwidth(self) -> float | None:
        """Effective bandwidth in bytes/s: bytes of the cost model / median time; None for a kernel without a cost model."""
        return _per_second(self.device_bytes, self.seconds) if self.device_bytes else None

    @cached_property
    def phases(self) -> tuple[PhaseTime, ...]:
        """The per-phase times in the kernel's order; empty for a simulated run."""
        return () if self.instrumented_repetition is None else self.timed(self.instrumented_repetition.parts)

    def phase_title(self, key: str) -> str:
        """Return the title of a phase; for any other kernel function its name."""
        return next((phase.title for phase in self.phase_names if phase.key == key), key)

    def timed(self, parts: tuple[events.Part, ...]) -> tuple[PhaseTime, ...]:
        """Return parts of the instrumented repetition with titles and shares; empty for a simulated run."""
        if self.simulated:
            return ()
        total = sum(p.seconds for p in parts) or 1.0
        amounts = PhaseTime._fields[4:]
        return tuple(
            PhaseTime(p.phase, self.phase_title(p.phase), p.seconds, p.seconds / total, *(getattr(p, name) for name in amounts))
            for p in parts
        )

    @property
    def device_count(self) -> int:
        """Return the number of devices: GPUs, or machines, because the processes of one machine share its cores."""
        return max(1, len({(rank.host, rank.gpu if rank.backend == "cuda" else 0) for rank in self.ranks}))

    @property
    def main_occupancy(self) -> events.Occupancy | None:
        """Theoretical occupancy of the op of the longest phase, else of the last op."""
        if not self.occupancies:
            return None
        slowest = max(self.phases, key=lambda p: p.seconds).key if self.phases else self.occupancies[-1].op
        return next((o for o in self.occupancies if o.op == slowest), self.occupancies[-1])

    @property
    def counters(self) -> dict[str, dict[str, float]]:
        """Hardware counters by op and key (fwtui.live.counters.METRICS), from a separate profile; empty if not requested."""
        return {c.op: c.values for c in self.counted}

    def listing(self, op: str) -> Listing | None:
        """The lines and instructions of an op, with their samples; None if they were not recorded."""
        code = dict(self.code).get(op)
        if code is None:
            return None
        sampled = next((one for one in self.warps if one.op == op), None)
        combined = _put_together(code.samples, code.text, sampled.samples if sampled is not None else LINE_UNITS)
        return replace(combined, mix=sampled.mix, relaxations=sampled.relaxations) if sampled is not None else combined

    def listed(self, samples: events.CodeSamples, text: events.CodeText) -> Run:
        """The run with the samples of an op's lines and instructions."""
        others = (one for one in self.code if one[0] != samples.op)
        return replace(self, code=(*others, (samples.op, SampledCode(samples, text)))[-MAX_OPS:])

    @property
    def indicative(self) -> str:
        """Return the reason for low confidence in its time; empty if there is none, or nothing is timed."""
        if self.done is None or not self.done.indicative or self.simulated:
            return ""
        count, recorded_passes = self.done.count, self.passes
        # if there were very many repetitions, only some were recorded
        seconds = sum(recorded_passes) if len(recorded_passes) == count else count * (self.done.median or 0.0)
        repetitions, enough = units.counted(count, "repetition"), units.duration(ENOUGH_SECONDS)
        if seconds >= ENOUGH_SECONDS:
            return f"only {repetitions}; {ENOUGH_PASSES} needed"
        if count >= ENOUGH_PASSES:
            return f"only {units.duration(seconds)} of repetitions; {enough} needed"
        return f"only {repetitions} in {units.duration(seconds)}; {ENOUGH_PASSES} and {enough} needed"

    def stage_seconds(self, name: str) -> float | None:
        """Return the seconds of a stage that is not timed; None if it has not happened (yet)."""
        if self.simulated:
            return None
        return next((s.seconds for s in reversed(self.stages) if s.name == name), None)

    @property
    def stage_times(self) -> list[tuple[str, float, int | None]]:
        """The finished stages in order: name, seconds, and bytes if it moved any."""
        return [(stage.name, stage.seconds, stage.bytes) for stage in self.stages if stage.seconds is not None]

    @property
    def end_to_end(self) -> float | None:
        """Seconds including copies and reordering; a CPU run has no copies."""
        copies = [0.0] if self.backend == "cpu" else [self.stage_seconds("load"), self.stage_seconds("unload")]
        copies += [self.stage_seconds(name) or 0.0 for name in ("reorder", "reorder back")]
        return None if self.seconds is None or None in copies else self.seconds + sum(c or 0.0 for c in copies)

    @property
    def clean_window(self) -> tuple[float, float] | None:
        """Session time from the start of the first timed repetition to the end of the last one so far; None for an old run."""
        if not self.samples:
            return None
        over = next((s for s in reversed(self.stages) if s.name == "clean"), None)
        return self.samples[0].since, (self.samples[-1] if over is None else over).t

    def brief(self, evidence: Evidence | None, before: Run | None = None) -> Run:
        """Return the run in the short form of old runs: the values of tables and charts, without those that only Explain shows.

        Equal values of the previous run are shared to save memory.
        """
        done = replace(self.done, passes=self.passes) if self.done is not None else None
        return sharing(replace(self, **DETAILS, done=done, evidence=evidence, old=True), before)

    def after(self, event: events.Event | Unknown) -> Run:
        """Return the run after an event; unchanged if the event does not affect runs."""
        news = self._news(event)
        return replace(self, **news) if news else self

    def _news(self, event: events.Event | Unknown) -> dict[str, Any]:
        match event:
            case event if type(event) in LATEST:  # first, as these and those that are gathered are the most
                return {LATEST[type(event)]: event}
            case events.Planned():
                return {name: getattr(event, name) for name in PLANNED}
            case events.Stage(seconds=None):
                return {"stage": event.name, "stage_since": event.t, "progress": None}
            case event if type(event) in GATHERED:
                name = GATHERED[type(event)]
                earlier: tuple[events.Event, ...] = getattr(self, name)
                # a made-up file may have more than any worker sends
                event = _few(event) if isinstance(event, events.RankPhases) else event
                return {name: (*earlier, event)} if len(earlier) < (MAX_PLANS if name == "plan" else MAX_GATHERED) else {}
            case events.Phases():
                return {"instrumented_repetition": _few(event)}
            case events.Counters() | events.WarpSamples() | events.CpuLoop():  # the last one of each op
                name = BY_OP[type(event)]
                return {name: (*(one for one in getattr(self, name) if one.op != event.op), event)[-MAX_OPS:]}
            case events.RunDone():
                return {"done": event, "state": event.outcome, "finished": event.t, "stage": "", "progress": None}
            case events.Fault() if self.state == "running":
                return {"fault": event, "state": "failed", "finished": event.t, "stage": "", "progress": None}
            case _:
                return {}


_put_together = lru_cache(maxsize=8)(listing_of)  # a screen requests the same listing repeatedly


def _few(event: P) -> P:
    """Return the event with at most MAX_PHASES phases."""
    return event if len(event.parts) <= MAX_PHASES else replace(event, parts=event.parts[:MAX_PHASES])


# titles of kernels and phases in older recordings
RENAMED = {"Several GPUs": "Distributed", "Register tile": "Tile in registers", "rest": "remainder"}


def started(event: events.RunStarted, before: Run | None = None) -> Run:
    """Return the run that this event begins. If its ranks equal those of the run before, both runs share them to save memory."""
    return Run(
        id=event.run,
        started=event.t,
        experiment=event.experiment,
        title=RENAMED.get(event.title, event.title),
        device=event.device_id,
        phase_names=tuple(replace(one, title=RENAMED.get(one.title, one.title)) for one in event.phases[:MAX_PHASES]),
        ranks=before.ranks if before is not None and before.ranks == event.ranks else event.ranks,
        n=0 if event.experiment.file else event.experiment.n,
    )


def first_runs(runs: Iterable[Run]) -> dict[tuple[object, ...], Run]:
    """Map each graph, and each graph with a data type, to its first verified run on the fewest devices."""
    first: dict[tuple[object, ...], Run] = {}
    for run in runs:
        if run.counts:
            graph = run.experiment.graph
            for key in (graph, (*graph, run.experiment.dtype)):
                if key not in first or run.device_count < first[key].device_count:
                    first[key] = run
    return first


def same(run: Run, experiment: Experiment, kernel: Kernel) -> bool:
    """Return True if the run is of that experiment, except for its size, repetitions and verification.

    Unset choices mean the kernel's defaults. Two runs with graph files count as equal, whichever the files.
    """
    if (run.experiment.kernel, bool(run.experiment.file)) != (experiment.kernel, bool(experiment.file)):
        return False
    ignoring = (*(GENERATED if experiment.file else ()), "n", "file", "repeats", "budget", "verify", "auto")
    tile = kernel.tile_for(0 if experiment.file else run.n, run.simulated, experiment.dtype)
    launch = "eager" if run.simulated else kernel.launch_modes[-1]

    def key(experiment: Experiment) -> tuple[object, ...]:
        whole = changed(
            experiment,
            tile=experiment.tile or tile if tile else 0,
            launch=experiment.launch or launch,
            options={o.name: experiment.options.get(o.name, o.default) for o in kernel.options},
            device="simulator" if experiment.device_id.simulated else str(experiment.device_id.index),
        )
        return identity(whole, ignoring)

    return key(run.experiment) == key(experiment)


def sharing(one: T, other: object) -> T:
    """Return `one` with its parts replaced by equal parts of `other`, to save memory: runs of a session differ in few parts."""
    if type(one) is not type(other):
        return one
    if one == other:
        return cast("T", other)
    if isinstance(one, Struct):
        return replace(one, **{name: sharing(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__})
    if isinstance(one, tuple):
        parts = [sharing(*pair) for pair in zip_longest(one, cast("tuple[object, ...]", other)[: len(one)])]
        return cast("Any", one)._make(parts) if hasattr(one, "_make") else cast("T", tuple(parts))
    return one


def _per_second(amount: int, seconds: float | None) -> float | None:
    """Return amount / seconds; None without a time, or if the quotient of a forged file is not finite."""
    rate = amount / seconds if seconds else inf
    return rate if isfinite(rate) else None
