"""Time to open a one-hour session and to paint a jump in it: python tests/benchmarks/scrubbing.py [JUMPS] [HOURS].

The goals are 0.5 s to open and a p95 of 0.1 s from a jump to its frame, with one synthetic hour at 10 Hz and sixty runs. The
processor time hardly depends on other work. A benchmark: it asserts nothing.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from builders import write_session

sys.path.insert(0, str(Path(__file__).parents[1]))

import scenes

from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.session_opener import recording
from fwtui.tui.frame.loaded_recording import Recording

SIZE = (120, 40)
HOUR = 3600.0


def session(folder: Path, hours: float) -> Path:
    """Write a session with telemetry at 10 Hz and a run each minute."""
    streams: list[list[events.Event]] = [scenes.telemetry(0.1, hours * HOUR, 0.7)]
    for minute in range(int(hours * 60)):
        kernel = ("naive", "katz-kider", "staged-load")[minute % 3]
        streams.append(scenes.run(minute + 1, 1 + 60.0 * minute, scenes.experiment(kernel), title=kernel, passes=50))
    return write_session(folder / "synthetic.fwt.jsonl", [scenes.header(), scenes.GPU, *scenes.merged(*streams)])


Clocks = tuple[float, float]  # seconds by the clock, and of the processor


def since(begin: Clocks = (0.0, 0.0)) -> Clocks:
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def opened(path: Path) -> tuple[Clocks, Recording]:
    """Return the time until a replay can be shown, and its recording."""
    begin = since()
    made = recording(path)
    return since(begin), made


async def jumps(played: Recording, count: int, place: str) -> list[Clocks]:
    """Return the seconds from each random jump until its frame is composed."""
    app = FwtuiApp(replay=played, still=True, place=place)
    dice = random.Random(1)
    taken = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert app.view is not None and app.view.playback is not None
        playback = app.view.playback
        playback._slice = 0.02  # as with a clock
        for _ in range(count):
            begin = since()
            playback.seek(dice.random())
            app.tick(0.0)
            while playback.model.index < playback.player.index:
                await asyncio.sleep(0.001)
            app.tick(0.0)
            await asyncio.sleep(0)
            app.screen._compositor.render_update(full=True)
            taken.append(since(begin))
    return taken


def main(count: int, hours: float) -> None:
    from fwtui.tui.frame.places import place_names

    with tempfile.TemporaryDirectory() as folder:
        path = session(Path(folder), hours)
        seconds = [opened(path)[0] for _ in range(3)]
        size = path.stat().st_size / 1e6
        wall, cpu = (median(each) for each in zip(*seconds, strict=True))
        print(f"{len(opened(path)[1].session.lines):,} events, {size:.1f} MB: opens in {wall:.2f} s (CPU {cpu:.2f} s)")
        for place in place_names():
            taken = asyncio.run(jumps(opened(path)[1], count, place))
            for name, each in zip(("clock", "CPU"), zip(*taken, strict=True), strict=True):
                middle, p95, worst = (1e3 * value for value in (median(each), quantiles(each, n=20)[-1], max(each)))
                print(f"{place}: seek to paint, {name}: median {middle:.0f} ms, p95 {p95:.0f} ms, worst {worst:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
