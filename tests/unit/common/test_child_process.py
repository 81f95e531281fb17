"""Child processes: requests, answers, time limits, and their end, also without a parent."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer

import psutil
import pytest

from fwtui.common.child_process import ChildProcess, ExitResult, Supervised, module_command


def child(program: str, stdin: int = subprocess.DEVNULL) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", program], {"TOLD": "so"}, stdin)


def test_a_child_receives_requests_and_runs_only_our_modules() -> None:
    program = "import os, sys; print(os.environ['TOLD'], sys.stdin.read()); sys.exit(3)"
    assert child(program).finish(60) == ExitResult(3, b"so \n", b"")
    assert child(program, stdin=subprocess.PIPE).finish(60, b"hello").stdout == b"so hello\n"
    assert module_command("fwtui.measure.worker", "0.5") == [sys.executable, "-P", "-m", "fwtui.measure.worker", "0.5"]


@pytest.mark.parametrize("stops", [True, False])
def test_a_child_ends_with_its_own_children(stops: bool, tmp_path: Path) -> None:
    mine = tmp_path / "pid"
    program = (
        "import pathlib, subprocess, sys, time\n"
        "started = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"print('begun', flush=True); pathlib.Path({str(mine)!r}).write_text(str(started.pid)); time.sleep(600)"
    )
    begun, stop = child(program), Event()
    while not mine.exists() or not mine.read_text():
        time.sleep(0.01)
    Timer(0.05, stop.set).start()
    begin = time.monotonic()
    ended = begun.finish(600, stop=stop) if stops else begun.finish(0.05)
    assert time.monotonic() - begin < 60 and ended == ExitResult(None, b"begun\n", b"") and begun.exit_code == -9
    grandchild = int(mine.read_text())
    with suppress(psutil.NoSuchProcess):  # a killed process may take a moment to be gone
        gone = psutil.Process(grandchild)
        while gone.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() - begin < 60
            time.sleep(0.01)


def test_an_exception_during_the_wait_kills_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    begun = child("import time; time.sleep(600)")
    monkeypatch.setattr(begun._process, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        begun.finish(60)
    assert begun.exit_code == -9


@pytest.mark.parametrize(
    ("stderr", "words"), [(b"", "exit code 1"), (b"a\nfwtui: the \x1b[31mreason\n\n", "the [31mreason"), (b"\xff", "\ufffd")]
)
def test_last_output(stderr: bytes, words: str) -> None:
    assert ExitResult(1, b"", stderr).last_output == words


def test_a_supervised_process_waits_for_its_work_and_ends_by_itself() -> None:
    started: list[ChildProcess] = []

    def start() -> ChildProcess:
        started.append(child("import sys; print(sys.stdin.read())", subprocess.PIPE))
        return started[-1]

    supervised = Supervised(start)
    supervised.prepare()
    supervised.prepare()
    assert len(started) == 1 and supervised.take() is started[0]
    assert started[0].finish(60, b"work").stdout == b"work\n"
    supervised.prepare()
    started[1].reap()
    assert supervised.take() is started[2], "the one that waited is dead"
    started[2].reap()
    supervised.prepare()
    started[3].reap()
    supervised.prepare()
    assert len(started) == 5
    supervised.close()
    assert started[4].exit_code == -9


CHILD = """
import os, sys, threading, time, warnings
from msgspec import Struct
from fwtui.common.errors import Refused
from fwtui.common.child_protocol import serve

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


def answer(request: bytes, *arguments: str) -> ExitResult:
    command = [sys.executable, "-P", "-c", CHILD, *arguments]
    ended = ChildProcess(command, {"PYTHONPATH": os.pathsep.join(sys.path)}, subprocess.PIPE).finish(60, request)
    return ended


def test_each_request_is_answered_and_the_end_of_stdin_ends_it() -> None:
    assert answer(b"") == ExitResult(0, b"", b"")
    assert answer(b'{"a":1,"b":2}\n{"a":3,"b":4,"how":"threads"}') == ExitResult(
        0, b'{"sum":3}\n{"sum":7}\n', b"printed\nprinted\n"
    )
    assert answer(b'{"a":1,"b":2}', "quiet") == ExitResult(0, b'{"sum":3}\n', b"")


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
    assert (ended.code, ended.stdout, ended.last_output) == (code, b"", words)


def test_an_invalid_request_is_a_mistake() -> None:
    ended = answer(b'{"a":"x"}\n')
    assert ended.code == 1 and ended.last_output.startswith("msgspec.ValidationError: ")


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
def test_a_child_that_reads_nothing_ends_with_its_parent(platform: str) -> None:
    program = f"PROGRAM, PLATFORM = {CHILD_OF_A_CHILD!r}, {platform!r}\n{CHILD_OF_A_CHILD}"
    parent = ChildProcess([sys.executable, "-P", "-c", program], {"PYTHONPATH": os.pathsep.join(sys.path)}).finish(60)
    assert parent.code == 0, parent
    with suppress(psutil.NoSuchProcess):
        orphan = psutil.Process(int(parent.stdout))
        psutil.wait_procs([orphan], 30)
        assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
