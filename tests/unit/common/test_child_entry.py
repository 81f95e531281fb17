"""The side of a child: what it is asked, what it answers, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from fwtui.common.child_process import ChildProcess, Ended

CHILD = """
import os, sys, threading, time, warnings
from msgspec import Struct
from fwtui.common.errors import Refused
from fwtui.common.serve import serve

class Add(Struct):
    a: int
    b: int
    how: str = ""

class Sum(Struct):
    sum: int

def handler(request, parent):
    print("printed", flush=True)
    warnings.warn("a warning")
    if request.how == "threads":
        threading.Thread(target=time.sleep, args=(600,)).start()
    elif request.how == "memory":
        raise MemoryError
    elif request.how == "refuse":
        raise Refused("it is refused")
    elif request.how == "mistake":
        raise ValueError("a mistake")
    elif request.how == "leave":
        raise SystemExit(7)
    elif request.how == "input":
        input()
    parent.send(Sum(request.a + request.b))

serve(Add, handler, quiet="quiet" in sys.argv, too_large="too large")
"""


def answer(request: bytes, *arguments: str) -> Ended:
    command = [sys.executable, "-P", "-c", CHILD, *arguments]
    ended = ChildProcess(command, {"PYTHONPATH": os.pathsep.join(sys.path)}, subprocess.PIPE).finish(60, request)
    return ended


def test_each_request_is_answered_and_the_end_of_stdin_ends_it() -> None:
    assert answer(b"") == Ended(0, b"", b"")
    assert answer(b'{"a":1,"b":2}\n{"a":3,"b":4,"how":"threads"}') == Ended(0, b'{"sum":3}\n{"sum":7}\n', b"printed\nprinted\n")
    assert answer(b'{"a":1,"b":2}', "quiet") == Ended(0, b'{"sum":3}\n', b"")


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("refuse", 2, "it is refused"),
        ("memory", 2, "too large"),
        ("mistake", 1, "ValueError: a mistake"),
        ("input", 1, "EOFError: EOF when reading a line"),
        ("leave", 7, "printed"),
    ],
)
def test_a_request_that_fails_is_the_last_one(how: str, code: int, words: str) -> None:
    ended = answer(b'{"a":1,"b":2,"how":"%s"}\n{"a":1,"b":2}\n' % how.encode())
    assert (ended.code, ended.stdout, ended.last_words) == (code, b"", words)


def test_what_is_no_request_is_a_mistake() -> None:
    ended = answer(b'{"a":"x"}\n')
    assert ended.code == 1 and ended.last_words.startswith("msgspec.ValidationError: ")


CHILD_OF_A_CHILD = """
import os, sys, time
from fwtui.common.signals import end_with_parent

if sys.argv[1:]:
    end_with_parent(sys.argv[1], 0.01)
    print(os.getpid(), flush=True)
    time.sleep(600)
else:
    import subprocess
    child = subprocess.Popen([sys.executable, "-P", "-c", PROGRAM, PLATFORM], stdout=subprocess.PIPE, start_new_session=True)
    print(child.stdout.readline().decode(), flush=True)
"""


@pytest.mark.parametrize("platform", sorted({sys.platform, "darwin"}))
def test_it_ends_with_its_parent_though_it_reads_nothing(platform: str) -> None:
    program = f"PROGRAM, PLATFORM = {CHILD_OF_A_CHILD!r}, {platform!r}\n{CHILD_OF_A_CHILD}"
    parent = ChildProcess([sys.executable, "-P", "-c", program], {"PYTHONPATH": os.pathsep.join(sys.path)}).finish(60)
    assert parent.code == 0, parent
    with suppress(psutil.NoSuchProcess):
        orphan = psutil.Process(int(parent.stdout))
        psutil.wait_procs([orphan], 30)
        assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
