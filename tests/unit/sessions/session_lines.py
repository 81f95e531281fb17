"""Lines of made-up sessions, and a session file of them."""

from pathlib import Path

from builders import header, run_started

from fwtui.experiment.experiment import Experiment
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events

HEADER = header(created="2025-06-01T00:00:00Z", title="a test")


def notice(t: float, text: str = "x") -> codec.Line:
    return codec.as_line(events.Notice(t=t, text=text))


def started(t: float, run: int, kernel: str = "naive") -> codec.Line:
    return codec.as_line(run_started(Experiment(kernel=kernel), run, t, title=kernel))


def planned(t: float, run: int, n: int) -> codec.Line:
    return codec.as_line(events.Planned(t=t, run=run, n=n, padded=n, steps=n, relaxations=min(n**3, 2**60), device_bytes=0))


def done(t: float, run: int, median: float | None = 0.5) -> codec.Line:
    return codec.as_line(events.RunDone(t=t, run=run, outcome="done", median=median))


def verdict(t: float, run: int, word: str = "verified") -> codec.Line:
    return codec.as_line(events.Verdict(t=t, run=run, verdict=word, how=""))


def telemetry(t: float) -> codec.Line:
    return codec.as_line(events.Telemetry(t=t, cpu_utilisation=0.5))


def record(path: Path, *lines: codec.Line, header: events.Header = HEADER, close: bool = True) -> Path:
    session = Recorder.at(path, header)
    for line in lines:
        session.write(line)
    if close:
        session.close()
    return path
