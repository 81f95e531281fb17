"""Cost of the dashboard under a flood of events: python tests/benchmarks/busy_dashboard.py [SECONDS].

A worker sends 5,000 events a second, the real sampler reads at 10 Hz, the terminal is 120x40. The goals are 25 % of a core for
the screen's process without its children, and 60 ms from a key to its paint (95th percentile). A benchmark: it asserts nothing.
"""

import os
import random
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import psutil
from pty_terminal import Terminal

EVENTS_PER_SECOND = 5000
BURST = 25  # events that come at once; each is written by itself, as a worker does
PRESSES_PER_SECOND = 2.0
KEY = b"b"
# alternate on the log line
ANSWERS = (b"is the baseline; runs of the same g", b"the first run of each graph is its")
HERE = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))  # this file can be imported
SETTLE = 3.0  # seconds until it is looked at


def flood(origin: float) -> None:
    """Send the events of one endless run as the worker."""
    from fwtui.stream import codec, events, requests

    request = requests.decode(sys.stdin.buffer.readline())
    assert isinstance(request, requests.RunRequest)
    run, n = request.run, request.experiment.n

    def now() -> float:
        return time.monotonic() - origin

    def tell(event: events.Event) -> None:
        os.write(1, codec.encode(event))

    phases = tuple(events.PhaseName(key, key) for key in ("pivot", "panels", "rest"))
    experiment = request.experiment
    tell(events.RunStarted(t=now(), run=run, experiment=experiment, title="Flood", backend="cpu", phases=phases))
    tell(events.Planned(t=now(), run=run, n=n, padded=n, steps=3 * n // 64, relaxations=n**3, device_bytes=n**3))
    tell(events.Stage(t=now(), run=run, name="warm-up"))
    begun, told = time.monotonic(), 0
    while True:
        for _ in range(BURST):
            told += 1
            if told % 20 == 0:
                tell(events.Round(t=now(), run=run, index=told // 20, first=told, seconds=(0.1, 0.2, 0.7)))
            elif told % 20 == 10:
                tell(events.Sample(t=now(), run=run, seconds=0.1, since=now()))
            else:
                tell(events.Progress(t=now(), run=run, stage="warm-up", done=told % 100_000 / 100_000, step=told, left=1.0))
        time.sleep(max(0.0, begun + told / EVENTS_PER_SECOND - time.monotonic()))


def dashboard() -> int:
    """Run the program with that worker."""
    from fwtui.experiment.experiment import defaults
    from fwtui.live import session
    from fwtui.live.event_child import EventModule
    from fwtui.tui import run_dashboard

    def hire(module: str, arguments: list[str], origin: float, environment: dict[str, str] | None = None) -> EventModule:
        if module == "fwtui.measure.worker":
            module, arguments = Path(__file__).stem, ["--flood"]
        return EventModule(module, arguments, origin, {**(environment or {}), "PYTHONPATH": HERE})

    session.EventModule = hire  # type: ignore[assignment, misc]
    return run_dashboard(session.Live(telemetry_hz=10), defaults(False))


def measure(seconds: float) -> None:
    terminal = Terminal([__file__, "--dashboard"], {"PYTHONPATH": HERE})
    chance = random.Random(7)
    try:
        assert terminal.rest(30.0, b"Quit") is not None, "the dashboard does not open"
        terminal.rest(1.0)
        terminal.press(b"r")
        assert terminal.rest(30.0, b"warming up") is not None, "the run does not start"
        terminal.rest(SETTLE)
        process = psutil.Process(terminal.pid)
        busy, begun = sum(process.cpu_times()[:2]), time.monotonic()
        took: list[float] = []
        missed = 0
        while time.monotonic() < begun + seconds:
            terminal.rest(chance.uniform(0.2, 1.8) / PRESSES_PER_SECOND)  # not in step with anything
            terminal.press(KEY)
            answer = terminal.rest(2.0, ANSWERS[(len(took) + missed) % 2])
            if answer is None:
                missed += 1
            else:
                took.append(answer)
        wall = time.monotonic() - begun
        share = (sum(process.cpu_times()[:2]) - busy) / wall
    finally:
        terminal.close()
    p95 = quantiles(took, n=20)[-1] if len(took) > 1 else float("nan")
    print(f"{EVENTS_PER_SECOND} events/s and telemetry at 10 Hz on 120x40 for {wall:.0f} s:")
    print(f"screen's process: {100 * share:.1f} % of a core (goal: at most 25 %); load {os.getloadavg()[0]:.1f}")
    print(
        f"key to paint: median {1000 * median(took):.0f} ms, 95th percentile {1000 * p95:.0f} ms (goal: at most 60 ms), "
        f"longest {1000 * max(took):.0f} ms over {len(took)} presses; {missed} not answered within 2 s"
    )


if __name__ == "__main__":
    if sys.argv[2:] == ["--flood"]:
        flood(float(sys.argv[1]))
    elif sys.argv[1:] == ["--dashboard"]:
        sys.exit(dashboard())
    else:
        measure(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
