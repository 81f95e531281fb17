"""Random keys, sizes and size reports in a real terminal, then a signal at a random moment: the program leaves nothing behind."""

import fcntl
import os
import random
import signal
import struct
import sys
import termios
from pathlib import Path

import psutil
import pytest
from attacking import SEED, sized
from builders import save_form
from ptyrun import RESTORED, PtyRun  # pyright: ignore[reportMissingImports]

from fwtui.experiment.experiment import Experiment
from fwtui.sessions.reader import load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
# no q, D, W, h or X: these end it or start another program
KEYS = (
    *b"1234567rnmabclyPR?sTgGxz/+-=<>LkKjJ \t\r\x10\x1b",
    *(b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[Z", b"\x1b[<0;9;9M"),
)
SIZES = ((30, 100), (24, 80), (10, 40), (60, 200), (1, 1))
SIDES = (0, 1, 24, 80, 9999999, 10**40)  # of a size in the input, which may be a lie
MAX_MEMORY = 400 << 20  # bytes


def storm(run: PtyRun, chance: random.Random, steps: int) -> None:
    for _ in range(steps):
        if chance.random() < 0.1:
            fcntl.ioctl(run.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *chance.choice(SIZES), 0, 0))
            os.killpg(run.process.pid, signal.SIGWINCH)
        if chance.random() < 0.03:
            run.press(b"\x1b[48;%d;%d;1;1t" % (chance.choice(SIDES), chance.choice(SIDES)))
        key = chance.choice(KEYS)
        run.press(key if isinstance(key, bytes) else bytes((key,)))
        run.read(chance.random() / 50)


@pytest.mark.attack
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 40))])
@pytest.mark.parametrize("what", ["dashboard", "replay"])
def test_a_storm_that_a_signal_ends(tmp_path: Path, own_cache: str, what: str, number: int) -> None:
    chance = random.Random(f"{SEED} {what} {number}")
    recording = tmp_path / "r.fwt.jsonl"
    words = {"dashboard": ["dashboard", "--record", str(recording)], "replay": ["replay", "lecture-tiles"]}
    folders = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": own_cache}
    save_form(tmp_path / "data", Experiment(kernel="serial", n=64))
    with PtyRun(*words[what], environment=folders, folder=tmp_path) as run:
        run.read_until(RESTORED[0].replace(b"l", b"h"))  # the screen is the program's
        storm(run, chance, chance.randrange(sized(120)))
        assert run.process.poll() is None, run.output[-500:]
        assert psutil.Process(run.process.pid).memory_info().rss < MAX_MEMORY
        end = chance.choice(SIGNALS)
        run.kill(end)
        assert run.process.returncode == (-end if end == signal.SIGKILL else 128 + end), run.output[-500:]
        if end != signal.SIGKILL:
            assert [mode for mode in RESTORED if mode not in run.output] == []
            assert termios.tcgetattr(run.terminal) == run.attributes
        assert run.orphans == [] and b"Traceback" not in run.output
    assert not [*tmp_path.rglob("errors/*.txt")]
    if what == "dashboard" and recording.exists():
        told = load(recording)
        assert told.damaged == 0 and (told.closed or end == signal.SIGKILL)
