"""Bottlenecks of CPU runs, derived from the loop, the busy cores and the cache that holds the matrix."""

import re
from typing import Any

import pytest
from builders import header, model_of, run_events
from msgspec.structs import replace

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.disturbances import instrumentation
from fwtui.analysis.explanation import LIMITS, explain
from fwtui.analysis.phase_table import phase_rows, roofs_of
from fwtui.analysis.report import result
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.event import Cache
from fwtui.stream.model import Model

MACHINE = events.Machine(
    cpu="Example CPU",
    cores=8,
    caches=(Cache(level=1, bytes=32 << 10), Cache(level=2, bytes=1 << 20), Cache(level=3, bytes=32 << 20, cores=8)),
)
LEVELS = (
    events.LevelLimit(1, 8e11, 1e11),
    events.LevelLimit(2, 4e11, 5e10),
    events.LevelLimit(3, 1e11, 2e10),
    events.LevelLimit(0, 2e10, 1e10),
)
MEASURED = events.Limits(
    t=0.0, backend="cpu", forms=(events.FormLimit("int32", 8e10),), copy_bytes_per_second=1e9, levels=LEVELS, complete=True
)
LOOP = events.CpuLoop(t=1.0, run=1, op="relax", lanes=16, item_bits=32, relaxations=64, mix={"vpaddd": 4, "vpminsd": 4, "jne": 1})
MHZ = 2500.0


def modelled(
    seconds: float,
    *told: events.Event,
    kernel: str = "serial",
    n: int = 1000,
    busy: float = 1.0,
    each_bytes: int = 12,
    limits: events.Limits | None = MEASURED,
    **asked: Any,
) -> Model:
    """Return a model with a run of one phase."""
    work = n**3
    part = events.Part(phase="all", seconds=seconds, launches=n, relaxations=work, device_bytes=each_bytes * work)
    experiment = Experiment(kernel=kernel, n=n, **{"dtype": "int32", **asked})
    use = events.CpuUse(t=2.0, run=1, busy=busy, usable=8, clock_mhz=MHZ)
    run = run_events(experiment, *told, use, backend="cpu", parts=[part], passes=[seconds] * 12)
    return model_of([header(machine=MACHINE), *([limits] if limits else []), *run])


def why(model: Model) -> str:
    return explain(ComparedRun(model, model.runs[1]), None).sentence()


NOISY = replace(MEASURED, levels=tuple(replace(one, noisy=True) for one in LEVELS))
NOISY_FORM = replace(MEASURED, forms=(events.FormLimit("int32", 8e10, noisy=True),))
SCALAR = replace(LOOP, lanes=1, relaxations=1)
OTHERS = (events.Telemetry(t=1.5, other_cpu_utilisation=0.95), events.Stage(t=2.0, run=1, name="clean", seconds=1.0))
# one of the eight cores does at most 1e10 relaxations a second, and moves 2e10 bytes a second in the L3 cache
CASES: dict[str, tuple[Model, str]] = {
    "one core": (modelled(0.125, LOOP, each_bytes=0), "instruction issue: 80 % of the peak rate of its busy cores."),
    "all cores": (
        modelled(0.0156, LOOP, each_bytes=0, kernel="tiled-cpu", tile=16, busy=8.0),
        "instruction issue: 80 % of the measured peak rate.",
    ),
    "noisy": (modelled(0.125, LOOP, limits=NOISY_FORM), "instruction issue: 80 % of the peak rate of its busy cores (noisy)."),
    "cache": (modelled(0.75, LOOP), "the L3 cache: 80 % of its bandwidth."),
    "memory": (modelled(40.0, LOOP, n=3000), "memory: 81 % of its bandwidth."),
    "noisy bandwidth": (modelled(0.75, SCALAR, limits=NOISY), "not vectorised: each instruction does one relaxation"),
    "library": (modelled(2.0, kernel="scipy", each_bytes=0), "unknown: compute 5 % of the peak rate of its busy cores."),
    "in turn": (
        modelled(0.22, LOOP, each_bytes=2),
        "instruction issue and the L3 cache: 45 % of the peak rate of its busy cores and 45 % of the bandwidth, alternating.",
    ),
    "waiting": (modelled(2.0, LOOP), "latency or other code: the inner loop issues only 0.03 instructions per cycle; copies, "),
    "skipped": (
        modelled(2.0, replace(SCALAR, skipped=8)),
        "not vectorised: the compiler cannot prove that rows k and i differ, so the scalar loop runs, not that of 8 per ",
    ),
    "others": (modelled(0.125, LOOP, *OTHERS, busy=0.3), "other processes: they used 7.6 of 8 cores, and this run 0.3."),
    "tiles": (modelled(2.0, kernel="tiled-cpu", tile=500), "too few tiles: 0 tiles, 8 cores."),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bottleneck_is_named_only_if_it_is_proven(case: str) -> None:
    model, words = CASES[case]
    assert f"Bottleneck: {words}" in why(model)


def test_the_facts_of_a_run_follow_its_reason() -> None:
    model = modelled(0.125, LOOP, each_bytes=0)
    assert why(model).endswith(
        "3.20 relaxations per cycle on each busy core, 1.0 of 8 cores busy; 16 relaxations per instruction (512 bits); "
        "its matrix of 3.81 MiB fits in the L3 cache."
    )
    told = result(model, model.runs[1])["cpu"]
    assert (told["busy_cores"], told["cores"], told["held_by"], told["bytes_per_second"]) == (1.0, 8, "L3 cache", 1e11)
    assert told["relaxations_per_cycle"] == pytest.approx(3.2) and told["loops"]["relax"]["vector_bits"] == 512
    # where other programs made some passes wait, the middle one's time says nothing of a core's work
    assert model.runs[1].cpu is not None
    model.apply(replace(model.runs[1].cpu, busy=0.5, each=0.25))
    assert result(model, model.runs[1])["cpu"]["relaxations_per_cycle"] == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("n", "caches", "limits", "memory"),
    [
        (250, MACHINE.caches, MEASURED, "the L2 cache"),  # 445 % of memory's bandwidth, once
        (1000, MACHINE.caches, replace(MEASURED, levels=()), "the L3 cache"),
        (1000, (), replace(MEASURED, levels=()), "memory"),  # recorded before caches were told
        (1000, MACHINE.caches, NOISY, "the L3 cache"),
    ],
)
def test_no_share_above_one_is_a_reason(n: int, caches: Any, limits: events.Limits, memory: str) -> None:
    model = modelled(1e-3, n=n, limits=limits, busy=8.0)
    header = model.header
    assert header is not None
    model.apply(replace(header, machine=replace(MACHINE, caches=caches)))
    known = roofs_of(model, model.runs[1])
    assert known.memory == memory
    assert known.bytes_per_second == {"the L2 cache": 4e11, "memory": 1e9}.get(memory, 1e11 if limits.levels else None)
    assert not [share for share in re.findall(r"([\d,]+) %", why(model)) if int(share) > 100]
    assert ("bandwidth of the L3 cache" in known.noisy) == (limits is NOISY)


def test_absurd_facts_and_no_limits_harm_nothing() -> None:
    model = modelled(0.5, LOOP, limits=None)
    found = explain(ComparedRun(model, model.runs[1]), None)
    assert found.missing == LIMITS and "peak rates of this device are not measured" in why(model)
    assert found.bottleneck("D measures them") == "unknown; D measures them"
    for busy in (0.0, 1e-300, 1e15):
        absurd = replace(LOOP, lanes=256, relaxations=1, mix={"a": 2**60})
        model = modelled(1e-9, absurd, busy=busy, n=2**17)
        assert why(model) and result(model, model.runs[1])["cpu"]


def test_phases_that_timers_lengthen_leave_the_bottleneck_to_the_whole_run() -> None:
    parts = [
        events.Part(phase=key, seconds=0.1, launches=9, relaxations=10**9 // 2, device_bytes=0) for key in ("panels", "rest")
    ]
    use = events.CpuUse(t=2.0, run=1, busy=8.0, usable=8, clock_mhz=MHZ)
    *before, done = run_events(
        Experiment(kernel="mine", n=1000, dtype="int32"), use, backend="cpu", parts=parts, passes=[0.0156] * 12
    )
    model = model_of([header(machine=MACHINE), MEASURED, *before, replace(done, instrumentation=0.1844)])
    assert "unknown: timer overhead above 10 % of the median time" in str(phase_rows(model, model.runs[1])[0].limiter)
    assert why(model).startswith("Bottleneck: instruction issue: 80 % of the measured peak rate. ")


def test_a_kernel_of_one_thread_has_one_busy_core_and_no_timer_overhead() -> None:
    run = (model := modelled(10.0, kernel="scipy", busy=4.4)).runs[1]
    assert ", 1.0 of 8 cores busy" in why(model) and run.done is not None
    longer = replace(run, done=replace(run.done, spread=None, instrumentation=8.4))
    assert instrumentation(longer)[0] == "timer overhead: not measurable"
