"""Writer of golden-v1.fwt.jsonl: a synthetic session with every kind of version 1, and one kind and one field from later.

The file is kept for ever: a later version of the program must still read these bytes as these events. Run this file
only to make the golden file of a new format version.
"""

from __future__ import annotations

from pathlib import Path

from fwtui.experiment.experiment import Experiment
from fwtui.stream import codec, events

GOLDEN = Path(__file__).with_name("golden-v1.fwt.jsonl")
PHASES = (
    events.PhaseName("pivot", "pivot tile"),
    events.PhaseName("panels", "row and column panels"),
    events.PhaseName("rest", "the rest"),
)

# a bytes entry is a JSON object that version 1 has no type for
EVENTS: list[events.Event | bytes] = [
    events.Header(
        t=0.0,
        program="fwtui 0.1.0",
        created="2025-01-02T03:04:05Z",
        title="synthetic golden session",
        machine=events.Machine(system="Linux 6.1", python="3.11.7", cpu="Synthetic CPU", cores=4, memory_bytes=8 * 2**30),
        versions={"fwtui": "0.1.0", "numpy": "2.0.0"},
    ),
    events.Device(
        t=0.01,
        name="Synthetic GPU",
        compute_capability=(9, 0),
        multiprocessors=132,
        memory_bytes=80 * 2**30,
        peak_bytes_per_second=3.35e12,
        max_clock_mhz=1980.0,
        power_limit_watts=700.0,
        driver="580.1",
        cuda="13.0",
    ),
    events.Telemetry(t=0.1, gpu_power_watts=71.5, gpu_utilisation=0.0, gpu_clock_mhz=345.0, throttle=1, cpu_utilisation=0.125),
    events.RunStarted(
        t=0.2,
        run=1,
        experiment=Experiment(kernel="katz-kider", n=96, tile=32, options={"threads": 256}, launch="graph", seed=7),
        title="Katz & Kider, tile 32",
        backend="cuda",
        phases=PHASES,
    ),
    events.Stage(t=0.21, run=1, name="graph"),
    events.Graph(t=0.22, run=1, vertices=96, edges=2736, low=1.0, high=16.0, negative_share=0.0, name="n = 96, density 0.3"),
    events.Planned(t=0.225, run=1, n=96, padded=96, steps=9, relaxations=96**3, device_bytes=663552),
    events.Stage(t=0.23, run=1, name="graph", seconds=0.02, bytes=36864),
    events.Progress(t=0.3, run=1, stage="clean", done=0.5, step=4, left=0.1),
    events.Telemetry(t=0.35, gpu_power_watts=312.25, gpu_utilisation=0.97, gpu_clock_mhz=1980.0, energy_joules=88.5),
    events.Sample(t=0.4, run=1, seconds=0.000125, since=0.39),
    events.Phases(
        t=0.5,
        run=1,
        seconds=0.00015,
        captured=True,
        parts=(
            events.Part(phase="pivot", seconds=0.00005, launches=3, relaxations=98304, device_bytes=24576),
            events.Part(phase="panels", seconds=0.00004, launches=3, relaxations=393216, device_bytes=196608),
            events.Part(phase="rest", seconds=0.00006, launches=3, relaxations=393216, device_bytes=442368),
        ),
    ),
    events.Round(t=0.51, run=1, index=0, first=0, seconds=(0.00002, 0.00001, 0.00002)),
    events.Occupancy(
        t=0.52,
        run=1,
        op="rest",
        threads=256,
        registers=40,
        shared_bytes=8192,
        blocks=6,
        warps=48,
        max_warps=64,
        limiters=("registers",),
        source="table",
    ),
    events.Verdict(
        t=0.6, run=1, verdict="verified", how="equal to SciPy", cells=9216, checksum="00c0ffee00c0ffee", reachable=9216
    ),
    events.RunDone(t=0.61, run=1, outcome="done", median=0.000125, spread=0.002, count=40, instrumentation=0.000025),
    events.Marker(t=0.7, text="a place that a person marked: Zürich"),
    events.Notice(t=0.71, text="a line for the log", level="warning"),
    b'{"kind":"heatmap","t":0.72,"cells":[1,2,3],"colour":{"low":"#000000"}}',
    b'{"kind":"notice","t":0.73,"text":"a field from later","level":"info","colour":"red"}',
    events.Fault(t=0.8, source="sampler", code="died", message="the sampler died (signal 11)", stderr="Segmentation fault"),
    events.End(t=0.9, reason="closed", events=21),
]


def golden_bytes() -> bytes:
    """Return the bytes of the session as this version writes it."""
    return b"".join(codec.seal(event) if isinstance(event, bytes) else codec.encode(event) for event in EVENTS)


if __name__ == "__main__":
    GOLDEN.write_bytes(golden_bytes())
