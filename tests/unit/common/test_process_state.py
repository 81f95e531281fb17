"""State of the own process: garbage collection, restrictions, heap, and the folder of compiled code."""

import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import run_python

from fwtui.__main__ import main
from fwtui.commands.doctor import report
from fwtui.common import environment, gc_pause
from fwtui.common.errors import Refused


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()


def test_existing_objects_are_not_scanned_again_nor_frozen_by_others() -> None:
    gc_pause.disable_gc()
    assert not gc.isenabled()
    gc_pause.enable_gc()
    assert gc.isenabled() and gc.get_freeze_count() > 1000
    before = gc.get_freeze_count()
    with gc_pause.paused():
        gc_pause.enable_gc()
        assert not gc.isenabled() and gc.get_freeze_count() == before
    assert gc.isenabled()


def test_a_command_in_a_foreign_process_does_not_change_the_collector(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_freeze_count()
    assert main(["kernels"]) == 0
    assert gc.isenabled() and gc.get_freeze_count() == before


def test_a_separate_program_starts_with_the_collector_off_and_works_with_it_on() -> None:
    words = "import gc, json, sys; sys.argv = ['fwtui', 'kernels']; from fwtui import __main__; "
    words += "from fwtui.common import gc_pause; told = []; "
    words += "rest = gc_pause.disable_gc; gc_pause.disable_gc = lambda: (rest(), told.append(gc.isenabled())); "
    words += "__main__.main(); print(json.dumps([told, gc.isenabled(), gc.get_freeze_count() > 1000]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr) == [[False], True, True]


TRY = """
import json, os, pathlib, shutil, socket, subprocess, sys, threading
from fwtui.tui.app.forbid_changes import forbid_changes
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
threading.Thread(target=int).start()
print(json.dumps([there.read_text(), done]))
"""


def test_a_restricted_process_reads_but_cannot_write_or_start_anything(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("as it was")
    read, told = json.loads(run_python(TRY, cwd=tmp_path))
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


def cache_folder() -> Path:
    folder, reason, _ = environment.code_cache()
    assert folder is not None, reason
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return an empty cache folder of this user."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    environment.code_cache.cache_clear()
    yield tmp_path / "cache" / "fwtui"
    environment.code_cache.cache_clear()


def test_the_folder_and_those_above_it_are_for_this_user_alone(cache: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache_folder()
    finally:
        os.umask(before)
    made = [folder, *folder.parents[:3]]
    assert cache in made and [path.stat().st_mode & 0o777 for path in made] == [0o700] * 4


@pytest.mark.parametrize("harm", ["writable", "by its group", "foreign", "above", "foreign above", "behind a link"])
def test_a_cache_that_another_user_could_write_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    folder = cache_folder()
    environment.code_cache.cache_clear()
    bad = folder
    if harm in ("writable", "by its group"):
        folder.chmod(0o777 if harm == "writable" else 0o770)
    elif harm == "foreign":
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
    elif harm == "above":
        bad = cache.parent
        bad.chmod(0o777)
    elif harm == "foreign above":
        bad = cache.parent
        os.chown(bad, 12345, -1) if os.getuid() == 0 else pytest.skip("only root gives a folder away")
    else:
        bad = cache.parents[1] / "open"
        bad.mkdir()
        cache.parent.rename(bad / "cache")
        cache.parent.symlink_to(bad / "cache")
        bad.chmod(0o777)
    private, reason, fix = environment.code_cache()
    assert private is None and reason.startswith(f"{bad} ") and f"chmod go-w {bad}" in fix and "XDG_CACHE_HOME" in fix
    assert environment.worker_environment("real")["NUMBA_CACHE_DIR"] == ""


def test_a_sticky_folder_above_does_no_harm_and_open_ones_of_the_program_are_closed(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o775)  # as an earlier version made it
    cache.parent.chmod(0o1777)
    assert cache_folder().is_relative_to(cache) and cache.stat().st_mode & 0o777 == 0o700


def test_nothing_is_cached_where_files_must_be_small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (4096, -1))
    told = [check for check in report() if "no file may have more than 4,096 bytes" in check.found and "`ulimit -f`" in check.fix]
    assert [(check.name, check.state) for check in told] == [("data", "note"), ("cache", "note")]


def test_a_number_of_threads_that_numba_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    with pytest.raises(Refused, match="NUMBA_NUM_THREADS is '0', but compiled kernels need at least one; set 1 or more"):
        environment.worker_environment("real")


def test_a_new_version_removes_what_others_compiled_long_ago(cache: Path) -> None:
    own = cache_folder()
    for name, age in (("old", 40), ("young", 1)):
        file = own.parent / name / "kernels_1" / "a.nbi"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"12345")
        for path in (file, file.parent, file.parent.parent):
            then = time.time() - age * 86400
            os.utime(path, (then, then))
    environment.code_cache.cache_clear()
    assert cache_folder() == own and (own.parent / "old").exists(), "only a new folder makes room"
    own.rmdir()
    environment.code_cache.cache_clear()
    assert cache_folder() == own and {folder.name for folder in own.parent.iterdir()} == {"young", own.name}
