"""Recorded sessions for tests, and the times of their runs, computed here from the lines of the file."""

from pathlib import Path
from statistics import median

from processes import DATA, ROOT

from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events

FOLDER = ROOT / "tests" / "recorded"
GOLDEN = DATA / "golden-v1.fwt.jsonl"
SESSION, OTHER = (FOLDER / f"h200-n{n}-naive-blocked.fwt.jsonl.gz" for n in (4096, 1024))
LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl.gz"


def medians(path: Path) -> dict[int, float]:
    """Return the median seconds of the repetitions of each run."""
    samples: dict[int, list[float]] = {}
    for line in reader.load(path).lines:
        if isinstance(line.event, events.Sample):
            samples.setdefault(line.event.run, []).append(line.event.seconds)
    return {run: median(seconds) for run, seconds in samples.items()}


def milliseconds(seconds: float) -> str:
    """Format seconds with three digits, as screens do between 1 ms and 1 s."""
    return f"{seconds * 1e3:#.3g}".rstrip(".") + " ms"
