"""Long use of the dashboard in short time: python tests/soak.py [MINUTES] (10). Not part of `make test`.

A dashboard runs n = 64 about once a second; one replay plays at 16x in a terminal, another in a page of `fwtui serve`. First the
dashboard makes WHOLE_RUNS runs, at most for MINUTES, and every screen, key and size is used once, so that first uses do not count
as growth. Then screens, sizes, dialogs, markers and names of the session change at random. Every ten seconds memory, descriptors
and number of the processes, the time from a key to its paint, and the size of the recording are noted. The exit code is 1 if the
last quarter of a series exceeds its second quarter by more than GROWTH, or if a program has ended.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median

import aiohttp
import psutil

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from builders import save_form
from pty_terminal import FWTUI, KEPT, Terminal  # pyright: ignore[reportMissingImports]

from fwtui.experiment.experiment import Experiment
from fwtui.stream.model import WHOLE_RUNS

EVERY = 10.0  # seconds between two looks
# by how much a line may rise from its second quarter to its last one: a share, and in its own unit
GROWTH = {"MB": (0.1, 8.0), "descriptors": (0.0, 2.0), "processes": (0.0, 0.0), "ms": (0.5, 150.0), "KB a run": (0.2, 5.0)}
SIZES = ((40, 120), (24, 80), (16, 60), (60, 200), (10, 40))
PLACES = (b"1", b"2", b"3", b"4", b"5", b"6", b"7")
KEYS = (b"?", b"l", b"y", b"P", b"\x1b[B", b"\r", b"\x10")
HELP, ESCAPE = b"Keys and glossary", b"\x1b"
Line = tuple[str, str]  # what it is, and its unit


def opened(folder: Path, *arguments: str) -> Terminal:
    """Yield the program in a terminal with empty user folders."""
    folders = {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CACHE", "CONFIG")}
    save_form(folder / "DATA", Experiment(kernel="tiled-cpu", n=64))
    return Terminal((*FWTUI, *arguments), folders)


class Visitor:
    """A visitor of `fwtui serve`, with the interface of a terminal."""

    def __init__(self, folder: Path):
        words = [sys.executable, "-P", *FWTUI, "serve", "--port", "0", "h200-n4096-naive-blocked"]
        folders = {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CACHE", "CONFIG")}
        self._server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **folders})
        self.pid = self._server.pid
        assert self._server.stdout is not None
        found = re.search(r"http://\S+/", self._server.stdout.readline())
        assert found is not None
        self._written, self._seen = threading.Condition(), bytearray()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._wait(self._come(f"{found[0]}ws?width=120&height=40"))

    def _wait(self, step: Coroutine[object, object, object]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _come(self, address: str) -> None:
        self._client = aiohttp.ClientSession()
        self._page = await self._client.ws_connect(address)
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._page:
            if message.type is aiohttp.WSMsgType.BINARY:
                with self._written:
                    self._seen += message.data
                    del self._seen[:-KEPT]
                    self._written.notify_all()

    def resize(self, rows: int, columns: int) -> None:
        self._send("resize", {"width": columns, "height": rows})

    def press(self, keys: bytes) -> None:
        with self._written:
            self._seen.clear()  # not later: what these keys paint may be there before anybody waits for it
        self._send("stdin", keys.decode())

    def _send(self, *message: object) -> None:
        self._wait(self._page.send_str(json.dumps(message)))

    def rest(self, seconds: float, until: bytes = b"") -> float | None:
        """Wait like Terminal.rest, but from the last key on, as a browser always reads."""
        begun = time.monotonic()
        with self._written:
            found = self._written.wait_for(lambda: bool(until) and until in self._seen, seconds)
        return time.monotonic() - begun if found else None

    def close(self) -> int:
        self._server.terminate()
        self._wait(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return self._server.wait()


Screen = Terminal | Visitor


def calm(*terminals: Screen) -> None:
    """Close all dialogs and go to the first place."""
    for keys in (*[ESCAPE] * 4, PLACES[0]):
        for terminal in terminals:
            terminal.press(keys)
        for terminal in terminals:
            terminal.rest(0.15 / len(terminals))


def processes(terminal: Screen) -> dict[str, psutil.Process]:
    """Return the program and its child processes by their role."""
    screen = psutil.Process(terminal.pid)
    found = {"screen": screen}
    for child in screen.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            module = next((word for word in child.cmdline() if word.startswith("fwtui.")), "")
            found[module.rpartition(".")[2] or "visitor"] = child
    return found


def soak(minutes: float, folder: Path) -> dict[Line, list[float]]:
    """Use the program and return the measured values by their name."""
    chance, lines = random.Random(7), dict[Line, list[float]]()
    dashboard, replay = opened(folder / "live", "dashboard"), opened(folder / "replay", "replay", "h200-n4096-naive-blocked")
    visitor = Visitor(folder / "served")
    screens: dict[str, Screen] = {"dashboard": dashboard, "replay": replay, "served": visitor}

    def rest(seconds: float) -> None:
        for terminal in screens.values():
            terminal.rest(seconds / len(screens))

    def note(what: str, unit: str, value: float) -> None:
        lines.setdefault((what, unit), []).append(value)

    rest(12.0)
    for terminal in (replay, visitor):
        terminal.press(b">>>>")
    tour = [(size, keys) for size in SIZES for keys in (*PLACES, *KEYS)]
    looked, turn = 0.0, 0

    def recorded() -> tuple[int, int]:
        """Return the number of runs in the dashboard's recordings, and their size in bytes."""
        files = [file.read_bytes() for file in (folder / "live").rglob("*.fwt.jsonl")]
        return sum(file.count(b'"kind":"rundone"') for file in files), sum(map(len, files))

    def look() -> None:
        for name, terminal in screens.items():
            there = processes(terminal)
            note(f"{name}: processes", "processes", len(there))
            for part, process in there.items():
                with contextlib.suppress(psutil.Error):
                    note(f"{name}: memory of the {part}", "MB", process.memory_info().rss / 1e6)
                    note(f"{name}: descriptors of the {part}", "descriptors", process.num_fds())
            terminal.resize(*SIZES[0])
            calm(terminal)
            terminal.rest(1.0)
            terminal.press(b"?")
            took = terminal.rest(5.0, HELP)
            note(f"{name}: key to paint", "ms", 5000 if took is None else 1000 * took)
            terminal.press(ESCAPE)
        runs, size = recorded()
        note("recording", "KB a run", size / 1000 / max(runs, 1))
        print(f"{(time.monotonic() - begun) / 60:5.1f} min, {runs:,} runs: ", end="")
        print(", ".join(f"{what} {values[-1]:.0f} {unit}" for (what, unit), values in lines.items() if unit == "MB"), flush=True)

    acts: tuple[Callable[[Screen], object], ...] = (
        lambda t: t.press(chance.choice(PLACES)),
        lambda t: t.press(chance.choice(KEYS)),
        lambda t: [t.resize(*chance.choice(SIZES)) for _ in range(20)],
    )
    try:
        begun = time.monotonic()
        while recorded()[0] < WHOLE_RUNS and time.monotonic() < begun + 60 * minutes:
            for _ in range(20):
                dashboard.press(b"r")
                rest(0.4)
        print(f"{recorded()[0]:,} runs in {(time.monotonic() - begun) / 60:.1f} min, before the first look", flush=True)
        begun = time.monotonic()
        while time.monotonic() < begun + 60 * minutes:
            turn += 1
            if tour:
                calm(*screens.values())
            dashboard.press(b"r")
            for terminal in (replay, visitor):
                terminal.press(b" ")  # from the end it begins again
            rest(0.8)
            if tour:
                size, keys = tour.pop()
                for terminal in screens.values():
                    terminal.resize(*size)
                    terminal.press(keys)
                rest(0.4)
            elif turn % 4 == 0:
                for terminal in screens.values():
                    chance.choice(acts)(terminal)
                rest(0.4)
                calm(dashboard)
            if turn % 60 == 30:  # save the session under another name, and add a marker
                calm(dashboard)
                for keys in (b"R", f"soak {turn}\r".encode(), b"m", b"here\r"):
                    dashboard.press(keys)
                    dashboard.rest(1.0)
            if time.monotonic() > looked + EVERY:
                looked = time.monotonic()
                look()
    finally:
        codes = {name: terminal.close() for name, terminal in screens.items()}
    failures = [file.read_text() for file in folder.rglob("errors/*.txt")]
    print(f"{recorded()[0]:,} runs; exit codes {codes}; {len(failures)} files of errors", *failures, sep="\n")
    bad = len(failures) + sum(code != 128 + signal.SIGTERM for code in codes.values())
    return {**lines, ("errors, and ends before the signal", "processes"): [0.0, 0.0, 0.0, float(bad)]}


def rises(values: list[float], unit: str) -> bool:
    """Return True if the last quarter exceeds the second by more than the tolerance."""
    share, amount = GROWTH[unit]
    before, after = (median(values[len(values) * at // 4 : len(values) * (at + 1) // 4] or values) for at in (1, 3))
    return after > before * (1 + share) + amount


def table(lines: dict[Line, list[float]]) -> bool:
    """Print each series and return True if none grows."""
    flat = True
    print(f"{'':52}{'first':>10}{'quarter':>10}{'half':>10}{'last':>10}{'95 %':>10}")
    for (what, unit), values in lines.items():
        at = [*(values[len(values) * place // 4] for place in (0, 1, 2)), values[-1], sorted(values)[len(values) * 95 // 100]]
        rising = rises(values, unit)
        flat = flat and not rising
        print(f"{f'{what} ({unit})':52}" + "".join(f"{value:10.1f}" for value in at) + ("  RISES" if rising else ""))
    return flat


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(not table(soak(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0, Path(place))))
