"""Threads that share a heap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
