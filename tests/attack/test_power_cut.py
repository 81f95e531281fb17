"""A power cut: a copy of the disk while the program's files are not written back; a run works on it, and recordings open."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attacking import RARE, SEED
from processes import ROOT

from fwtui.common.atomic_file import atomic_write
from fwtui.sessions.reader import load

RUN = ("run", "-k", "serial", "-n", "8", "--repeats", "1", "--telemetry-hz", "0")


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """Mount a disk image whose files stay in memory until they are synced; skip the test if that is not possible."""
    at.mkdir()
    options = "loop,noauto_da_alloc,commit=300"
    done = subprocess.run(["mount", "-o", options, str(image), str(at)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def fwtui(home: Path, *words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG", "NUMBA"))}
    environment |= {"HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "fwtui", *words]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done


@pytest.mark.attack
@RARE
@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "mount", "losetup"))),
    reason="a loop device needs root, mount and mkfs.ext4",
)
def test_a_power_cut(tmp_path: Path) -> None:
    disk, cut = tmp_path / "disk", tmp_path / "cut"
    with disk.open("wb") as file:
        file.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(disk)], check=True)
    with mounted(disk, tmp_path / "before") as home:
        fwtui(home, *RUN, "--record", "r.fwt.jsonl")
        with atomic_write(home / "d.csv") as file:
            file.write(b"distances\n")
        time.sleep(SEED % 7 / 7)
        shutil.copy(disk, cut)
    with mounted(cut, tmp_path / "after") as home:
        told = load(home / "r.fwt.jsonl")
        assert told.closed and not told.damaged
        assert (home / "d.csv").read_bytes() == b"distances\n"
        fwtui(home, *RUN)
