"""What a process is to itself: its collector rests while it starts, it may not change anything, its threads share a heap."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui.common import gc_pause


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()


def test_what_was_there_is_not_looked_through_again_nor_frozen_by_others() -> None:
    gc_pause.rest()
    assert not gc.isenabled()
    gc_pause.wake()
    assert gc.isenabled() and gc.get_freeze_count() > 1000
    before = gc.get_freeze_count()
    with gc_pause.paused():
        gc_pause.wake()
        assert not gc.isenabled() and gc.get_freeze_count() == before
    assert gc.isenabled()


def test_a_command_in_somebody_elses_process_leaves_the_collector_alone(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_freeze_count()
    assert main(["kernels"]) == 0
    assert gc.isenabled() and gc.get_freeze_count() == before


def test_a_program_of_its_own_starts_at_rest_and_works_awake() -> None:
    words = "import gc, json, sys; sys.argv = ['fwtui', 'kernels']; from fwtui import __main__; "
    words += "from fwtui.common import gc_pause; told = []; "
    words += "rest = gc_pause.rest; gc_pause.rest = lambda: (rest(), told.append(gc.isenabled())); "
    words += "__main__.main(); print(json.dumps([told, gc.isenabled(), gc.get_freeze_count() > 1000]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr) == [[False], True, True]


ROOT = Path(__file__).resolve().parents[3]
TRY = """
import json, os, pathlib, shutil, socket, subprocess, sys, threading
from fwtui.common.read_only import forbid_changes
there = pathlib.Path("there")
tries = {
    "write": lambda: open("new", "w"), "append": lambda: open(there, "ab"), "update": lambda: open(there, "r+"),
    "descriptor": lambda: os.open("new", os.O_WRONLY | os.O_CREAT), "touch": lambda: pathlib.Path("new").touch(),
    "remove": there.unlink, "rename": lambda: there.rename("new"), "folder": lambda: os.mkdir("new"),
    "link": lambda: os.symlink("there", "new"), "mode": lambda: there.chmod(0), "copy": lambda: shutil.copy(there, "new"),
    "program": lambda: subprocess.run(["true"]), "shell": lambda: os.system("true"), "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]), "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)), "signal": lambda: os.kill(os.getppid(), 0),
}
forbid_changes()
done = {}
for name, act in tries.items():
    try:
        done[name] = repr(act())
    except PermissionError as error:
        done[name] = error.strerror
import decimal  # what is not loaded yet still can be
threading.Thread(target=print).start()
print(json.dumps([there.read_text(), done]))
"""


def test_it_reads_and_is_refused_whatever_would_write_or_start_something(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("as it was")
    path = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, cwd=tmp_path, env=path, timeout=30)
    read, told = json.loads(done.stdout.splitlines()[-1])
    assert read == "as it was" and len(told) > 15
    assert {name: said for name, said in told.items() if said != "this program is read-only"} == {}
    assert [file.name for file in tmp_path.iterdir()] == ["there"] and (tmp_path / "there").read_text() == "as it was"


THREADS = """
import ctypes, sys
from threading import Barrier, Thread
from fwtui.common.malloc_arenas import limit_malloc_arenas
if sys.argv[2] == "one":
    limit_malloc_arenas()
c = ctypes.CDLL(None)
c.malloc.restype = c.fopen.restype = ctypes.c_void_p
c.fclose.argtypes = [ctypes.c_void_p]
c.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
there = Barrier(4)
def take():
    c.malloc(5000)
    there.wait()
threads = [Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = c.fopen(sys.argv[1].encode(), b"w")
c.malloc_info(0, file)
c.fclose(file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has several heaps")
def test_threads_share_one_heap(tmp_path: Path) -> None:
    def heaps(how: str) -> int:
        told = tmp_path / how
        subprocess.run([sys.executable, "-c", THREADS, str(told), how], check=True)
        return told.read_text().count("<heap nr=")

    assert heaps("one") == 1 < heaps("several")
