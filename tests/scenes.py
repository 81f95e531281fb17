"""Made-up sessions for the tests of screens; the title of the header says that they are synthetic."""

import math
from typing import Any

import builders
from builders import listed, occupancy, run_started
from msgspec.structs import replace

from fwtui.experiment.experiment import Experiment, settle
from fwtui.stream import events
from fwtui.stream.listing import CodeLine, Instruction, Listing
from fwtui_kernels import registry

TITLE = "synthetic, for tests"
GIB = 2**30
PHASES = (
    events.PhaseName("pivot", "pivot tile"),
    events.PhaseName("panels", "row and column"),
    events.PhaseName("rest", "remaining tiles"),
)
MACHINE = events.Machine(system="Linux", python="3.11.9", cpu="Example CPU 9000", cores=16, memory_bytes=128 * GIB)
GPU = events.Device(
    t=0.01,
    name="Example GPU",
    compute_capability=(9, 0),
    multiprocessors=132,
    memory_bytes=141 * GIB,
    peak_bytes_per_second=4.81e12,
    max_clock_mhz=1980.0,
    power_limit_watts=700.0,
    driver="580.00",
)
RANK_PHASES = tuple(
    events.PhaseName(key, title)
    for key, title in (*((key, key) for key in ("pivot", "panels", "broadcast", "rest")), ("wait", "waiting"))
)
NO_GPU = events.Device(t=0.01, present=False, note="no NVIDIA driver is installed")


def header() -> events.Header:
    return builders.header(title=TITLE, machine=MACHINE)


def telemetry(start: float, seconds: float, busy: float, gpu: bool = True) -> list[events.Event]:
    """Return telemetry samples at 10 Hz that oscillate slightly around `busy` (0 to 1)."""
    readings: list[events.Event] = []
    for tick in range(int(seconds * 10)):
        t = round(start + tick / 10, 3)
        level = busy * (0.9 + 0.1 * math.sin(t))
        readings.append(
            events.Telemetry(
                t=t,
                cpu_utilisation=0.1 + 0.5 * level,
                cpu_clock_mhz=3100.0,
                host_memory_bytes=int((6 + 2 * level) * GIB),
                gpu_power_watts=90 + 500 * level if gpu else None,
                gpu_utilisation=level if gpu else None,
                gpu_clock_mhz=345 + 1600 * level if gpu else None,
                gpu_temperature=31 + 20 * level if gpu else None,
                gpu_memory_bytes=int((1 + 3 * level) * GIB) if gpu else None,
                throttle=0 if gpu else None,
                sm_occupancy=0.47 * level if gpu else None,
                dram_utilisation=0.13 * level if gpu else None,
            )
        )
    return readings


def run(
    number: int,
    start: float,
    experiment: Experiment,
    *,
    title: str = "",
    backend: str = "",
    seconds: float = 0.0384,
    shares: tuple[float, ...] = (0.03, 0.07, 0.9),
    passes: int = 12,
    verdict: events.Verdict | None = None,
    until: str = "end",
) -> list[events.Event]:
    """Return a run's events in order; `until` names the stage in which they stop. Title and backend are the kernel's."""
    n, kernel = experiment.n, registry().get(experiment.kernel)
    if kernel is not None:
        title, backend = title or kernel.title, backend or kernel.backend
    padded = -(-n // (experiment.tile or 1)) * (experiment.tile or 1)
    told: list[events.Event] = [run_started(experiment, number, start, title=title, backend=backend, phases=PHASES)]
    t = start
    for name, took in (("graph", 0.2), ("compile", 0.8), ("load", 0.0021), ("warm-up", 2 * seconds)):
        told += [events.Stage(t=t, run=number, name=name), events.Stage(t=t + took, run=number, name=name, seconds=took)]
        t += took
        if name == "graph":
            told.append(events.Graph(t=t, run=number, vertices=n, edges=int(0.3 * n * n), low=1, high=16))
            told.append(
                events.Planned(
                    t=t,
                    run=number,
                    n=n,
                    padded=padded,
                    steps=3 * padded // (experiment.tile or 1),
                    relaxations=padded**3,
                    device_bytes=int(padded**3 / (experiment.tile or 1) * 12),
                )
            )
    if backend == "cuda":
        told.append(occupancy(t=t, run=number, shared_bytes=12288, limiters=("registers",), source="driver"))
    told.append(events.Stage(t=t, run=number, name="clean"))
    for done in range(passes):
        told.append(events.Sample(t=t + seconds, run=number, seconds=seconds, since=t))
        t += seconds + 0.005
        share = (done + 1) / passes
        told.append(events.Progress(t=t, run=number, stage="clean", done=share, left=(passes - done - 1) * seconds))
        if until == "clean" and done == passes // 2:
            return told
    told.append(events.Stage(t=t, run=number, name="clean", seconds=passes * seconds))
    whole = seconds * 1.02
    parts = tuple(
        events.Part(phase=p.key, seconds=whole * share, launches=128, relaxations=int(padded**3 * share), device_bytes=10**9)
        for p, share in zip(PHASES, shares, strict=True)
    )
    told.append(events.Phases(t=t + whole, run=number, seconds=whole, parts=parts, captured=experiment.launch == "graph"))
    t += whole
    told.append(events.Stage(t=t + 0.002, run=number, name="unload", seconds=0.002))
    found = verdict or events.Verdict(
        t=t, run=number, verdict="verified", how="16 rows by Dijkstra", cells=16 * n, checksum="9f3c2a77b18d40e1"
    )
    told.append(replace(found, t=t + 0.3, run=number))
    told.append(
        events.RunDone(
            t=t + 0.31,
            run=number,
            outcome="done",
            median=None if backend == "simulator" else seconds,
            spread=None if backend == "simulator" else 0.003,
            count=passes,
            indicative=passes < 10,
            instrumentation=None if backend == "simulator" else whole - seconds,
        )
    )
    return told


def verdict(word: str, how: str = "", cycle: tuple[int, ...] = ()) -> events.Verdict:
    return events.Verdict(t=0, run=0, verdict=word, how=how, cycle=cycle)


def several_gpus(number: int, idler: int | None = None) -> list[events.Event]:
    """Return a session with a run on that many made-up GPUs; `idler` has less work than the others."""
    told = run(1, 1.0, experiment("katz-kider", 16384), seconds=0.5, passes=12)
    end = told[-1].t
    gpus = [replace(GPU, gpu=index, nvlink_peak_bytes_per_second=9.56e11) for index in range(number)]
    readings: list[events.Event] = []
    for reading in telemetry(0.1, end, 0.95):
        assert isinstance(reading, events.Telemetry)
        work = 0.95 if 2.5 < reading.t < end - 1 else 0.02
        for index in range(number):
            level = (min(work, 0.4) if index == idler else work) + 0.01 * math.sin(reading.t + index)
            more = {} if index == 0 else dict.fromkeys(("cpu_utilisation", "cpu_clock_mhz", "host_memory_bytes"))
            readings.append(
                replace(
                    reading,
                    **more,
                    gpu=index,
                    gpu_power_watts=90 + 500 * level,
                    gpu_clock_mhz=1980.0,
                    throttle=0x4 if index == 1 and 5 < reading.t < 6 else 0,
                    sm_utilisation=level,
                    dram_utilisation=0.3 * level,
                    nvlink_bytes_per_second=3.5e11 * level,
                    pcie_bytes_per_second=2e8 * level,
                )
            )
    return [header(), *gpus, *merged(told, readings)]  # type: ignore[list-item]


def experiment(kernel: str, n: int = 4096, simulated: bool = False, **changes: object) -> Experiment:
    return settle(Experiment(kernel=kernel, n=n, **changes), simulated)  # type: ignore[arg-type]


def merged(*streams: list[events.Event]) -> list[events.Event]:
    """Merge streams by time; each keeps its order."""
    return sorted((e for stream in streams for e in stream), key=lambda e: e.t)


def gpu_session() -> list[events.Event]:
    """Return three runs on a made-up GPU (naive, Katz-Kider, Katz-Kider with another tile) and a marker between them."""
    naive = run(1, 1.0, experiment("naive"), seconds=0.2272, passes=9)
    second = naive[-1].t + 1.0
    blocked = run(2, second, experiment("katz-kider"))
    third = blocked[-1].t + 1.0
    small = run(3, third, experiment("katz-kider", tile=16), seconds=0.0612)
    end = small[-1].t
    readings = merged(
        telemetry(0.1, 0.9, 0.02),
        telemetry(1.0, naive[-1].t - 1.0, 0.95),
        telemetry(naive[-1].t, 1.0, 0.05),
        telemetry(second, blocked[-1].t - second, 0.9),
        telemetry(blocked[-1].t, 1.0, 0.05),
        telemetry(third, end - third, 0.9),
    )
    mark = [events.Marker(t=second - 0.5, text="now with tiles in shared memory")]
    return [header(), GPU, *merged(naive, blocked, small, readings, mark)]  # type: ignore[list-item]


def sampled_session(run: int = 3, **reasons: int) -> list[events.Event]:
    """Return `gpu_session` with PC samples of a run: one line where warps stall, and one without samples."""
    hot = CodeLine("mine.py", 9, "    best = min(best, via)", reasons)
    code = Listing(
        lines=(CodeLine("mine.py", 8, "    via = a + b", {"wait": 0}), hot),
        instructions=(Instruction(16, "LDS R1, [R2]", 1, reasons), Instruction(32, "NOP", 1, {"wait": 0})),
        mix={"LDS": 3, "FMNMX": 1},
        relaxations=1,
    )
    told = gpu_session()
    at: dict[str, Any] = {"t": told[-1].t, "run": run, "op": "rest"}
    return [*told, *listed(code, events.WarpSamples(**at, reasons=reasons, hot=hot))]


def ranked_run(
    number: int, start: float, ranks: int, *, seconds: float, backend: str = "cuda", n: int = 4096
) -> list[events.Event]:
    """Return a run on several ranks; the first never waits, and later ones wait longer."""
    devices = ",".join("cpu" if backend == "cpu" else str(rank) for rank in range(ranks))
    asked = experiment("distributed" if backend == "cuda" else "distributed-cpu", n, devices=devices)
    told = run(number, start, asked, title="Distributed", backend=backend, seconds=seconds)
    places = tuple(events.RankOf(rank=rank, backend=backend, gpu=rank if backend == "cuda" else 0) for rank in range(ranks))
    rounds, panel = -(-n // asked.tile), asked.tile * (n + asked.tile) * 4

    def parts(rank: float) -> tuple[events.Part, ...]:
        waiting = 0.04 * rank
        shares = (0.01, 0.05, 0.06, 0.88 - waiting, waiting)
        return tuple(
            events.Part(
                phase=phase.key,
                seconds=seconds * share,
                launches=rounds if phase.key != "wait" else 0,
                relaxations=0 if phase.key in ("broadcast", "wait") else int(n**3 / ranks * share),
                device_bytes=10**8 if phase.key != "wait" else 0,
                link_bytes=rounds * panel * (ranks - 1) if phase.key == "broadcast" else 0,
            )
            for phase, share in zip(RANK_PHASES, shares, strict=True)
            if share
        )

    made: list[events.Event] = []
    for event in told:
        match event:
            case events.RunStarted():
                made.append(replace(event, ranks=places, phases=RANK_PHASES))
            case events.Phases():
                middle = parts((ranks - 1) / 2)
                made.append(replace(event, parts=middle, seconds=sum(part.seconds for part in middle)))
                for rank in range(ranks):
                    made.append(events.RankPhases(t=event.t, run=number, rank=rank, seconds=seconds, parts=parts(rank)))
            case _:
                made.append(event)
    return made


def ranked_session(ranks: int, alone: bool = True) -> list[events.Event]:
    """Return a run on that many made-up GPUs, preceded by a run of the same graph on one GPU if `alone`."""
    first = run(1, 1.0, experiment("look-ahead"), seconds=0.03)
    after = ranked_run(2, first[-1].t + 1.0, ranks, seconds=0.03 / (0.97 * ranks))
    return [header(), GPU, *merged(first if alone else [], after)]


def cpu_session() -> list[events.Event]:
    """Return a run of tiled-cpu and a simulated one, on a machine without a GPU."""
    tiled = run(1, 1.0, experiment("tiled-cpu", 512), seconds=0.021, passes=30)
    after = tiled[-1].t + 1.0
    simulated = run(2, after, experiment("katz-kider", 16, simulated=True), backend="simulator", seconds=1.5, passes=1)
    return [header(), NO_GPU, *merged(tiled, simulated, telemetry(0.1, simulated[-1].t, 0.6, gpu=False))]
