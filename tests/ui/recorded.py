"""What a recorded session says of its runs, reckoned here from its lines: what screens are held to."""

from pathlib import Path
from statistics import median

from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events

FOLDER = Path(__file__).parents[1] / "recorded"
SESSION, OTHER = (FOLDER / f"h200-n{n}-naive-blocked.fwt.jsonl.gz" for n in (4096, 1024))
LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl.gz"


def medians(path: Path) -> dict[int, float]:
    """Seconds of each run: the median of its passes."""
    samples: dict[int, list[float]] = {}
    for line in reader.load(path).lines:
        if isinstance(line.event, events.Sample):
            samples.setdefault(line.event.run, []).append(line.event.seconds)
    return {run: median(seconds) for run, seconds in samples.items()}


def milliseconds(seconds: float) -> str:
    """Three digits, as screens write times between 1 ms and 1 s."""
    return f"{seconds * 1e3:#.3g}".rstrip(".") + " ms"
