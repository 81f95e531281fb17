"""A child process that sends events, and the thread that reads them."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from threading import Event, Thread

from fwtui.common.child_process import ChildProcess, Supervised, describe_exit, module_command
from fwtui.common.errors import Corrupt
from fwtui.common.process_limits import ProcessLimits, kill_tree
from fwtui.common.text import MAX_LENGTH, sanitise
from fwtui.stream import requests
from fwtui.stream.codec import Line, decode_lines
from fwtui.stream.events import Fault
from fwtui.stream.stages import during

SILENCE = 120.0  # seconds without output, for graphs of any size
LIMIT_CHECK_SECONDS = 1.0  # seconds: a check takes some milliseconds, which must not disturb a timed run
MATRICES = 8  # host memory of a run in matrices of the graph's size, beyond a small graph's limit: it stores and verifies copies


class EventChild(ChildProcess):
    """A process whose events are queued in `lines` until taken.

    A thread reads them. Closing its stdin requests its end.
    """

    called = "the worker"
    after_death = "the next run gets a new one"  # the end of the message about its death
    _patience = 0.5  # seconds to wait, once, for the last output of a dead process

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None):
        self.lines: deque[Line | Corrupt] = deque()
        self.silent = Event()  # set after the last event
        super().__init__(command, environment, stdin=subprocess.PIPE)
        self._reader = Thread(target=self._listen, name="events", daemon=True)
        self._reader.start()

    @property
    def death(self) -> str:
        """A description of its death."""
        return f"{self.called} {self.excess}" if self.excess else f"{self.called} died ({describe_exit(self.exit_code or 0)})"

    @property
    def killed(self) -> bool:
        """True if it died of SIGKILL for an unknown reason."""
        return self.exit_code == -signal.SIGKILL and not self.excess

    def death_fault(self, t: float, run: int | None, stage: str) -> Fault:
        """Return the fault that reports its death, in that run or outside of runs; `stage` is the stage of the run, if any."""
        message = f"{self.death}{during(stage)}; {self.after_death}"
        if self.killed:
            message += ". If no user killed it, the machine ran out of memory; choose a smaller n"
        return Fault(t=t, source="worker", code="died", run=run, message=message, stderr=self.last_output)

    @property
    def workers(self) -> tuple[int, ...]:
        """The process ids of the workers that have started."""
        return (self.pid,)

    @property
    def gone(self) -> bool:
        """True if it is dead and all its events have been read (not necessarily taken)."""
        return self.silent.is_set() and self.exit_code is not None

    @property
    def last_output(self) -> str:
        """The end of its stderr, safe to show, with the first line of a crash before it."""
        if self.exit_code is not None:
            self._reader.join(self._patience)  # the pipe of events closes first; stderr may still be arriving
            self._patience = 0.0
        lines = [sanitise(line) for line in bytes(self.stderr).decode("utf-8", "replace").splitlines()]
        lines = [line for line in lines if not line.startswith("Extension modules: ")]
        crash = next((f"{line}\n" for line in lines if line.startswith("Fatal Python error: ")), "")[:MAX_LENGTH]
        end = "\n".join(lines)
        return end if len(end) <= MAX_LENGTH else crash + end[len(end) - (MAX_LENGTH - len(crash)) :]

    def reap(self) -> int:
        self.kill()
        code = self._process.wait()
        self._reader.join(self._patience)
        return code

    def _listen(self) -> None:
        try:
            self._take(filter(None, iter(partial(self.read, None), None)))
        finally:
            self.silent.set()
            while self._unread:
                self.read(None)
            self._close_pipes()

    def _take(self, chunks: Iterator[bytes]) -> None:
        self.lines.extend(decode_lines(chunks))


class EventModule(EventChild):
    """A module of this program that sends events."""

    def __init__(self, module: str, arguments: Sequence[str], origin: float, environment: Mapping[str, str] | None = None):
        super().__init__(module_command(module, repr(origin), *arguments), environment)


# a module's name, its arguments, the session's start in monotonic seconds, and environment variables
StartModule = Callable[[str, Sequence[str], float, Mapping[str, str] | None], EventChild]
# a StartModule with the start of the present session
StartChild = Callable[[str, Sequence[str], Mapping[str, str] | None], EventChild]


class SupervisedEvents(Supervised[EventChild]):
    """A child whose events a session takes; a new one replaces it after its end."""

    def dead(self) -> EventChild | None:
        """Return the child and forget it once it is dead and all its events are taken."""
        return self.close() if self.child is not None and self.child.gone and not self.child.lines else None


def enforce_limits(worker: EventChild, request: requests.Work, busy: Callable[[], bool], silence: float = SILENCE) -> None:
    """Check the worker's limits in a thread while it is `busy` with a request for a user's file; kill it if it exceeds one."""
    if isinstance(request, requests.ProbeRequest) or not request.own:
        return
    memory = ProcessLimits().memory + MATRICES * 4 * request.experiment.n**2 / 2**30
    limits, begun = ProcessLimits(memory=memory), time.monotonic()

    def watch() -> None:
        while busy() and worker.exit_code is None and not worker.exceeds(limits):
            if time.monotonic() - max(begun, worker.last_output_time) > silence:
                worker.excess = f"writes no output for {silence:g} s: an endless loop, or threads that wait for each other"
                break
            time.sleep(LIMIT_CHECK_SECONDS)
        if worker.excess:
            worker.kill()
        kill_tree(worker.pid, worker.mark, itself=False)

    Thread(target=watch, name="limits").start()
