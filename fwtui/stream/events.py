"""All events: every fact that a worker, a sampler or a session file can state.

Times `t` are seconds since the session began. A value that could not be measured is None, never 0. Numbers are
bounded here and strings are cleaned in the codec, so every event is safe to compute with and safe to show.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from fwtui.experiment.experiment import Experiment
from fwtui.stream.event import (
    MAX_RANKS,
    Amount,
    Cells,
    Celsius,
    Count,
    Event,
    FormLimit,
    GpuIndex,
    LevelLimit,
    Machine,
    OfDevice,
    OfRun,
    Parent,
    Rank,
    RankOf,
    Real,
    RunId,
    Seconds,
    Share,
    Vertex,
)
from fwtui.stream.listing import CodeLine, Mix, Reasons
from fwtui.stream.listing import CodeSamples as CodeSamples
from fwtui.stream.listing import CodeText as CodeText
from fwtui.stream.quantity import CELSIUS, DURATION, GPM, MEGAHERTZ, MEMORY, PERCENT, TRAFFIC, WATTS, Quantity, quantities_of

FORMAT = "fwtui-session"
VERSION = 1  # a reader refuses a newer one
MINOR = 0  # a reader accepts a newer one
MAX_SAMPLES = 100  # recorded samples of a run; its RunDone counts all
PLAN_STEPS, PLAN_RECTS = 16, 32  # at most, of a plan in one event, and of a step's reads or writes
MAX_SUPERNODES = 4096
MAX_NOTES = 40  # lines for the lecturer on a cue card


class Header(Event, frozen=True, kw_only=True, omit_defaults=False):
    """The first line of a session; states its format and version even if they are the defaults."""

    format: str = FORMAT
    version: Annotated[int, Meta(ge=1, le=10**6)] = VERSION
    minor: Annotated[int, Meta(ge=0, le=10**6)] = MINOR
    program: str
    created: str  # ISO 8601, UTC
    title: str = ""
    machine: Machine = Machine()
    versions: dict[str, str] = {}


class Device(Event, OfDevice, frozen=True, kw_only=True):
    """The properties of a GPU, or its absence. Worker and sampler each send an event; the Model merges them."""

    gpu: GpuIndex = 0
    present: bool = True
    name: str = ""
    compute_capability: tuple[Count, Count] | None = None
    multiprocessors: Count | None = None
    memory_bytes: Count | None = None
    peak_bytes_per_second: Amount | None = None  # device memory, from clock and bus width
    max_clock_mhz: Amount | None = None
    l2_bytes: Count | None = None
    power_limit_watts: Amount | None = None
    nvlink_peak_bytes_per_second: Amount | None = None  # all links, both directions together
    pcie_peak_bytes_per_second: Amount | None = None  # both directions together
    driver: str = ""
    cuda: str = ""
    uuid: str = ""  # empty in a session: it identifies one board
    note: str = ""  # why something is missing


class PhaseName(Struct, frozen=True):
    key: str
    title: str


class RunStarted(OfRun, OfDevice, frozen=True, kw_only=True):
    """A run begins: its experiment and its device."""

    experiment: Experiment
    title: str
    backend: str  # "cpu" | "cuda" | "simulator"
    phases: tuple[PhaseName, ...]
    gpu: GpuIndex = 0
    ranks: Annotated[tuple[RankOf, ...], Meta(max_length=MAX_RANKS)] = ()  # if several processes share the matrix


class Planned(OfRun, frozen=True, kw_only=True):
    """The graph's size (known for a file only once it is read) and the amounts of the kernel's plan."""

    n: Count
    padded: Count
    steps: Count
    relaxations: Count
    device_bytes: Count


class Ordered(OfRun, frozen=True, kw_only=True):
    """The supernodes of a sparse graph, children first, without their vertices; empty if the plan is the dense one."""

    sizes: Annotated[tuple[Vertex, ...], Meta(max_length=MAX_SUPERNODES)] = ()
    parents: Annotated[tuple[Parent, ...], Meta(max_length=MAX_SUPERNODES)] = ()  # their numbers; -1: none
    above: Annotated[tuple[Vertex, ...], Meta(max_length=MAX_SUPERNODES)] = ()  # vertices above that each subtree touches
    directed: bool = True  # whether two vertices may have different distances there and back
    fill: Share | None = None  # cells of the factor / cells of a dense factor


class PlanStep(Struct, frozen=True):
    """A step of a plan, or the heaviest of several with the relaxations of all. Rectangles are top, left, bottom, right."""

    round: Count
    phase: str
    relaxations: Count
    reads: Annotated[tuple[Cells, ...], Meta(max_length=PLAN_RECTS)]
    writes: Annotated[tuple[Cells, ...], Meta(max_length=PLAN_RECTS)]


class Plan(OfRun, frozen=True, kw_only=True):
    """Steps of the plan of a user kernel, so that a replay does not need its file; all events of a run have `of` steps."""

    of: Count
    steps: Annotated[tuple[PlanStep, ...], Meta(max_length=PLAN_STEPS)]


class Source(OfRun, frozen=True, kw_only=True):
    """Lines of a file of a user kernel, from line `first`; recorded only on request."""

    file: str  # file name
    first: Count
    lines: tuple[str, ...]


class Stage(OfRun, frozen=True, kw_only=True):
    """A stage of a run that is not timed: without seconds at its start, with seconds at its end."""

    name: str  # a key of fwtui.stream.stages.STAGES
    seconds: Seconds | None = None  # for a copy, the median of several copies
    bytes: Count | None = None


class Graph(OfRun, frozen=True, kw_only=True):
    """The input graph, as generated or read."""

    vertices: Count
    edges: Count
    low: Real | None = None  # least and greatest weight, as generated
    high: Real | None = None
    negative_share: Share | None = None
    name: str = ""
    note: str = ""


class Progress(OfRun, frozen=True, kw_only=True):
    stage: str
    done: Share
    step: Count | None = None  # index into the plan, if known
    left: Seconds | None = None


class Sample(OfRun, frozen=True, kw_only=True):
    """A timed repetition, started at `since`. At most MAX_SAMPLES repetitions of a run have one."""

    seconds: Seconds
    since: Seconds


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time and work of a phase in the instrumented repetition."""

    phase: str
    seconds: Seconds
    launches: Count
    relaxations: Count
    device_bytes: Count
    link_bytes: Count = 0
    cpu_seconds: Seconds = 0.0  # CPU time of all cores; 0: not measured


class Phases(OfRun, frozen=True, kw_only=True):
    """The instrumented repetition with the median total; for several ranks their mean seconds and their total work."""

    seconds: Seconds
    parts: tuple[Part, ...]
    captured: bool = False  # timed inside a CUDA graph
    passes: Count = 1


class RankPhases(OfRun, frozen=True, kw_only=True):
    """The phases of one rank in the instrumented repetition; the part "wait" is its time in a broadcast before the last rank."""

    rank: Rank
    seconds: Seconds
    parts: tuple[Part, ...]


class Round(OfRun, frozen=True, kw_only=True):
    """A sampled round of the instrumented repetition: seconds per phase, from relaxation `first`."""

    index: Count
    first: Count
    seconds: tuple[Seconds, ...]  # one per phase, in the order of RunStarted.phases


class Occupancy(OfRun, frozen=True, kw_only=True):
    """Theoretical occupancy of one compiled op."""

    op: str
    threads: Count
    registers: Count
    shared_bytes: Count
    spill_bytes: Count = 0
    blocks: Count  # resident blocks per multiprocessor
    warps: Count
    max_warps: Count
    limiters: tuple[str, ...]
    source: str  # "driver" | "table"


class Counters(OfRun, frozen=True, kw_only=True):
    """Hardware counters of one launch of one op, from a separate profile: not timings of the run."""

    op: str
    values: dict[str, Amount]  # keys, units: fwtui.live.counters.METRICS


class WarpSamples(OfRun, frozen=True, kw_only=True):
    """PC samples of a kernel function, from launches that are not timed (CUPTI)."""

    op: str
    rank: Rank | None = None  # rank of the launches, for a run on several devices
    reasons: Reasons
    cycles: Count = 0  # between two samples on a multiprocessor
    dropped: Count = 0  # samples that the hardware lost
    unmapped: Count = 0  # samples of instructions without a source line
    hot: CodeLine | None = None  # the line with the most samples of the most frequent reason
    mix: Mix = {}  # see Listing.mix
    relaxations: Count = 0

    @property
    def samples(self) -> int:
        return sum(self.reasons.values())


class Sampled(OfRun, frozen=True, kw_only=True):
    """The end of the PC sampling of a run."""

    note: str = ""  # the reason for missing samples, of all or of some ops
    seconds: Seconds | None = None


class CpuUse(OfRun, frozen=True, kw_only=True):
    """The CPU time of a run's timed repetitions, as counted by its process."""

    busy: Amount  # cores, on average: the process's CPU time / time
    each: Seconds | None = None  # mean CPU time of a repetition
    usable: Annotated[int, Meta(ge=1, le=2**20)]  # cores
    clock_mhz: Amount | None = None  # clock of a core right after them, measured with a chain of one-cycle instructions


class CpuLoop(OfRun, frozen=True, kw_only=True):
    """The inner loop that an op executes on the CPU."""

    op: str
    lanes: Annotated[int, Meta(ge=1, le=256)]  # relaxations in one instruction
    item_bits: Annotated[int, Meta(ge=1, le=64)]
    relaxations: Annotated[int, Meta(ge=1, le=2**20)]  # relaxations in one iteration of the loop
    mix: Mix = {}  # instructions of one iteration
    skipped: Annotated[int, Meta(ge=0, le=256)] = 0  # lanes of a vector loop that a check for overlapping rows skips


class Verdict(OfRun, frozen=True, kw_only=True):
    """The result of the verification of the distances, and its method."""

    verdict: str  # "verified" | "wrong" | "out of range" | "unverified" | "negative cycle"
    how: str
    cells: Count = 0  # compared
    checksum: str = ""  # Fletcher-64 of the canonical distances
    reachable: Count | None = None
    cycle: tuple[Vertex, ...] = ()
    seconds: Seconds | None = None


class RunDone(OfRun, frozen=True, kw_only=True):
    """The end of a run. Times are those of the timed repetitions; None if the run is not timed."""

    outcome: str  # "done" | "cancelled" | "refused" (the user's mistake, in `message`) | "failed"
    message: str = ""
    median: Seconds | None = None
    spread: Amount | None = None  # half-width of the median's 95 % interval, relative
    count: Count = 0
    indicative: bool = False  # fewer than 10 runs or less than 0.5 s of them
    instrumentation: Real | None = None  # instrumented repetition minus median, in seconds
    # only if there were more than MAX_SAMPLES: that many, evenly spread; the Samples are the first repetitions
    passes: tuple[Seconds, ...] = ()


class Fault(Event, frozen=True, kw_only=True):
    """A failure of a component: a sentence for the user, and the last output of the process that died."""

    source: str  # "worker" | "sampler" | "recorder"
    code: str  # "died", "cuda", "memory", "hung", "error", "disk"
    message: str
    run: RunId | None = None
    stderr: str = ""


class Telemetry(Event, OfDevice, frozen=True, kw_only=True):
    """A telemetry sample of a GPU, and of the host with the first GPU: MHz, watts, bytes, bytes per second, shares of 1."""

    gpu: GpuIndex = 0
    # a field with a Quantity is a track of the telemetry screen and, unless `later`, a column of the strip
    gpu_power_watts: Annotated[
        Amount | None, Quantity("power", WATTS, "power draw of the board", "power_limit_watts", 700, place=1, among=2)
    ] = None
    gpu_utilisation: Annotated[
        Share | None, Quantity("GPU util", PERCENT, "share of time with a kernel running", 1, place=4, source="NVML")
    ] = None
    memory_utilisation: Share | None = None
    gpu_clock_mhz: Annotated[
        Amount | None, Quantity("SM clock", MEGAHERTZ, "clock of the SMs", "max_clock_mhz", 2000, place=2, among=5)
    ] = None
    memory_clock_mhz: Annotated[
        Amount | None, Quantity("mem clock", MEGAHERTZ, "clock of the GPU memory", later=True, place=10)
    ] = None
    gpu_temperature: Annotated[Celsius | None, Quantity("temp", CELSIUS, "temperature of the GPU", 95, least=20, place=3)] = None
    gpu_memory_bytes: Annotated[
        Count | None, Quantity("memory used", MEMORY, "allocated", "memory_bytes", place=7, short="mem used")
    ] = None
    throttle: Count | None = None  # NVML bit mask of clocks-event reasons
    energy_joules: Amount | None = None
    sm_utilisation: Annotated[
        Share | None, Quantity("SM activity", PERCENT, "share of cycles with a resident warp", 1, later=True, among=1, source=GPM)
    ] = None
    sm_occupancy: Annotated[
        Share | None, Quantity("SM occupancy", PERCENT, "achieved occupancy", 1, place=5, source=GPM, short="SM occ.")
    ] = None
    integer_utilisation: Annotated[Share | None, Quantity("INT pipe", PERCENT, "utilisation", 1, later=True, source=GPM)] = None
    fp32_utilisation: Annotated[Share | None, Quantity("FP32 pipe", PERCENT, "utilisation", 1, later=True, source=GPM)] = None
    dram_utilisation: Annotated[
        Share | None, Quantity("DRAM util", PERCENT, "DRAM throughput / peak", 1, place=6, among=4, source=GPM)
    ] = None
    nvlink_bytes_per_second: Annotated[
        Amount | None, Quantity("NVLink", TRAFFIC, "sent and received", "nvlink_peak_bytes_per_second", 9e11, later=True, among=3)
    ] = None
    pcie_bytes_per_second: Annotated[
        Amount | None,
        Quantity("PCIe", TRAFFIC, "sent and received", "pcie_peak_bytes_per_second", 1e11, later=True, among=3, source=GPM),
    ] = None
    cpu_utilisation: Annotated[Share | None, Quantity("CPU", PERCENT, "utilisation of all cores", 1, host=True)] = None
    cpu_clock_mhz: Annotated[
        Amount | None,
        Quantity("OS CPU clock", MEGAHERTZ, "from the OS; nominal in a VM", about=5000, host=True, short="OS clock"),
    ] = None
    host_memory_bytes: Annotated[Count | None, Quantity("host mem", MEMORY, "used", "memory_bytes", 2**36, host=True)] = None
    other_cpu_utilisation: Annotated[
        Share | None, Quantity("other CPU", PERCENT, "CPU use by other processes, of all cores", 1, later=True, host=True)
    ] = None
    cost_seconds: Annotated[Seconds | None, Quantity("sampling", DURATION, "time to read one sample", later=True, host=True)] = (
        None
    )


QUANTITIES = quantities_of(Telemetry)


class Notice(Event, frozen=True, kw_only=True):
    """A line for the log."""

    text: str
    level: str = "info"  # "info" | "warning" | "error"


class Marker(Event, frozen=True, kw_only=True):
    """A place in a recording that the user marked; in a lecture a cue card (fwtui.learn.questions)."""

    text: str
    title: str = ""  # short title above the text
    answer: str = ""  # answer of a question that no run can answer
    notes: Annotated[tuple[str, ...], Meta(max_length=MAX_NOTES)] = ()  # lines that only the lecturer sees


class End(Event, frozen=True, kw_only=True):
    """The last line of a closed session; `events` counts the lines before it."""

    reason: str  # "closed" | "signal" | ...
    events: Count
    dropped: Count = 0


class Limits(Event, OfDevice, frozen=True, kw_only=True):
    """The measured peak rates of a device. Sent again with all results so far until complete."""

    backend: str  # "cpu" | "cuda"
    gpu: GpuIndex = 0
    device: str = ""
    forms: tuple[FormLimit, ...] = ()
    copy_bytes_per_second: Amount | None = None  # read and written, in the device's own memory
    copy_noisy: bool = False  # see FormLimit.noisy
    levels: Annotated[tuple[LevelLimit, ...], Meta(max_length=10)] = ()  # nearest level first
    complete: bool = False
    note: str = ""  # why something is missing


ALL: tuple[type[Event], ...] = (*(kind for kind in Event.__subclasses__() if kind is not OfRun), *OfRun.__subclasses__())
