"""A kernel test: the plan, then small graphs, in a separate process that may hang, crash or lose its GPU.

`run_kernel_test()` is the interface for screens and `watch`; fwtui.measure.kernel_test_process is the process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import msgspec

from fwtui.common.child_process import STOP_CHECK_SECONDS, ModuleProcess, describe_exit
from fwtui.common.process_limits import ProcessLimits
from fwtui.common.text import sanitise
from fwtui.experiment.device import DeviceId
from fwtui.stream.kernel_tests import BROKEN, DIED, LOADING, OVER, PRINTED, TIMED_OUT, Begun, Finding, KernelTestRequest

SECONDS = 20.0  # limit of a case; on a GPU most of the time is compilation
LOADING_SECONDS = 30.0  # minimum limit of loading: numba may have to be read from a cold disk
LIMITS = ProcessLimits()
MAX_PRINTED = 10  # reported lines of a kernel's output
MAX_BYTES = 2**24  # maximum length of a line
PLACE = signal.SIGUSR1  # requests the line of the file that a hanging kernel executes
PLACE_SECONDS = 2.0
GRACE = 0.2  # seconds to end after its last message


def run_kernel_test(
    request: KernelTestRequest,
    *,
    seconds: float = SECONDS,
    stop: Event | None = None,
    start: Callable[[], KernelTestProcess] | None = None,
    begun: Callable[[Begun], object] = lambda begun: None,
) -> Iterator[Finding]:
    """Yield the findings of loading, checking and running a kernel as they occur; a kernel's errors are findings, never raised.

    A case that takes longer than `seconds`, or in which the process dies, is the last finding. The test ends when another
    thread sets `stop`. `start` returns the process, for example a waiting one. `begun` gets the start of each case.
    """
    child = start() if start is not None else KernelTestProcess(request.device)
    case = LOADING
    try:
        child.send(request)
        child.hang_up()
        for line in child.lines(stop):
            if line is None:
                if child.excess:
                    yield Finding(case=case, outcome=BROKEN, sentence=f"{_of(case)}the kernel {child.excess}")
                else:
                    yield Finding(case=case, outcome=TIMED_OUT, sentence=_hung(case, child.limit, child.stuck_at(request.path)))
                return
            try:
                answer = msgspec.json.decode(line, type=Finding | Begun)
            except msgspec.MsgspecError:
                yield Finding(case=case, outcome=DIED, sentence=f"{_of(case)}its process sent an invalid message")
                return
            if isinstance(answer, Finding):
                for line in child.printed_lines():
                    yield Finding(case=case, outcome=PRINTED, sentence=f"it prints: {line}")
                yield msgspec.structs.replace(answer, case=sanitise(answer.case), sentence=sanitise(answer.sentence))
            else:
                case = sanitise(answer.case)
                if case == OVER:
                    return
                begun(msgspec.structs.replace(answer, case=case))
                child.limit = max(seconds, LOADING_SECONDS) if case == LOADING else seconds
        if not (stop is not None and stop.is_set()):
            ended = describe_exit(child.end())
            yield Finding(case=case, outcome=DIED, sentence=f"{_of(case)}the process that ran it died ({ended})")
    finally:
        if case == OVER:  # a GPU's context takes time to end
            Thread(target=child.end, name="end of a kernel test").start()
        else:
            child.reap()


def _of(case: str) -> str:
    return "" if case == LOADING else f"{case}: "


def _hung(case: str, seconds: float, place: str) -> str:
    at = f", at {place}" if place else ""
    why = "an endless loop, or threads that wait for others that never arrive"
    return f"{_of(case)}no end within {seconds:g} s{at}: {why}"


class KernelTestProcess(ModuleProcess):
    """The process of a kernel test. It waits for its request with everything imported and the device open.

    The end of its stderr is stored.
    """

    def __init__(self, device: DeviceId):
        super().__init__("fwtui.measure.kernel_test_process", str(device), simulated=device.simulated)
        self._shown = 0  # lines of its output reported so far
        self.limit = LOADING_SECONDS  # seconds without a message

    def end(self) -> int:
        """Return its exit code; it has GRACE seconds to end."""
        return self.close(GRACE)

    def printed_lines(self) -> list[str]:
        """Return its output lines since the last call, up to a total per test."""
        lines = [line for line in map(sanitise, bytes(self.stderr).decode("utf-8", "replace").splitlines()) if line]
        self.stderr.clear()
        before, self._shown = self._shown, self._shown + len(lines)
        more = ["..."] * (before <= MAX_PRINTED < self._shown)
        return lines[: max(MAX_PRINTED - before, 0)] + more

    def lines(self, stop: Event | None) -> Iterator[bytes | None]:
        """Yield its messages line by line; None at the end if it exceeds the time or another limit."""
        half, self.last_output_time = b"", time.monotonic()
        while len(half) < MAX_BYTES and not (stop is not None and stop.is_set()):
            left = self.last_output_time + self.limit - time.monotonic()
            if self.exceeds(LIMITS) or left <= 0:
                yield None
                return
            output = self.read(min(STOP_CHECK_SECONDS, left))
            if output is None:
                return
            *whole, half = (half + output).split(b"\n")
            yield from whole
            if whole:  # the consumer may have taken long
                self.last_output_time = time.monotonic()

    def stuck_at(self, path: str) -> str:
        """Return the line of the file that the kernel executes: mine.py:12; empty if none is found in two seconds."""
        end, output = time.monotonic() + PLACE_SECONDS, b""
        while path and time.monotonic() < end:  # between two simulated threads no line of the file runs
            self._process.send_signal(PLACE)
            output += self.read(STOP_CHECK_SECONDS) or b""
            if (line := output.rpartition(b"\n")[0].rpartition(b"\n")[2]).isdigit():
                return sanitise(f"{Path(path).name}:{int(line)}")
        return ""
