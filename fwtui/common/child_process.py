"""Child processes: modules of this program and other commands, with their input, output, limits and end."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from fwtui.common.environment import worker_environment
from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.process_limits import MARK, ProcessLimits, kill_tree, new_mark, process_tree
from fwtui.common.text import quoted, sanitise

STOP_CHECK_SECONDS = 0.2  # seconds between checks of `stop`
CHUNK = MAX_STDERR = 64 * 1024  # bytes: read at once, and stored of stderr
_WAYS: dict[int | None, str] = {
    errno.EAGAIN: "; end other programs, or raise the limit of processes, which `ulimit -u` shows",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "; close some, or raise the limit, which `ulimit -n` shows"),
}


class StartError(Refused, OSError):
    """The system could not start a process; the message names the limit that was reached."""

    def __init__(self, error: OSError, command: str):
        name, way = sanitise(os.path.basename(command)), _WAYS.get(error.errno, "")
        super().__init__(f"the process {name} was not started: {os_error_reason(error)}{way}")


class ExitResult(NamedTuple):
    """A child's output and exit code."""

    code: int | None  # negative: signal number; None: killed on timeout or on request
    stdout: bytes
    stderr: bytes

    @property
    def last_output(self) -> str:
        """The last line of its stderr, safe to show; the exit code if stderr is empty."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return sanitise(lines[-1].removeprefix("fwtui: ")) if lines else f"exit code {self.code}"


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this program."""
    # -P: a fwtui/ folder in the current directory must not be imported instead of this program
    return [sys.executable, "-P", "-m", module, *arguments]


def describe_exit(exit_code: int) -> str:
    """Describe how a process ended: 'signal 9, killed'; 'exit code 1'."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    name = None
    with suppress(ValueError):
        name = signal.strsignal(-exit_code)
    return f"signal {-exit_code}, {name.lower()}" if name else f"signal {-exit_code}"


class ChildProcess:
    """A command in its own process session: the terminal's Ctrl-C does not reach it, and its children are killed with it.

    By default its stdin is empty. The owner either waits for its end with finish(), or reads its stdout with read(), which
    stores the end of its stderr. Raises StartError.
    """

    excess = ""  # the limit that it exceeded, as a predicate for a message

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL):
        self._selector: selectors.BaseSelector | None = None
        self.mark = new_mark()
        self.stderr, self.printed = bytearray(), 0  # the end of its stderr, and the number of bytes written to it
        self.last_output_time = time.monotonic()  # time of its last output on stdout, or of its start
        try:
            self._process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **(environment or {}), MARK: self.mark},
            )
        except OSError as error:
            raise StartError(error, command[0]) from None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, negative for a signal."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill the process and all its descendants."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def exceeds(self, limits: ProcessLimits) -> bool:
        """Return True if its process tree exceeds one of the limits; `excess` then describes that limit."""
        self.excess = limits.excess(process_tree(self.pid), self.printed)
        return bool(self.excess)

    def close(self, grace: float = 2.0) -> int:
        """Close its stdin, kill it after `grace` seconds, and return its exit code."""
        self.hang_up()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        return self.reap()

    def reap(self) -> int:
        """Kill its process tree and return its exit code."""
        self.kill()
        self._close_pipes()
        return self._process.wait()

    def _close_pipes(self) -> None:
        for stream in filter(None, (self._selector, self._process.stdout, self._process.stderr)):
            stream.close()
        self._selector = None

    def send(self, request: Struct | bytes) -> None:
        """Write a line to its stdin. A dead process is not an error here: its exit code reports it."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(request_line(request))
                self._process.stdin.flush()

    def hang_up(self) -> None:
        """Close its stdin, which ends the process."""
        stdin, self._process.stdin = self._process.stdin, None
        if stdin is not None:
            with suppress(OSError):
                stdin.close()

    def read(self, seconds: float | None) -> bytes | None:
        """Return the next bytes of its stdout; None at the end. Wait at most that many seconds, without a limit for None.

        Its stderr is stored in `stderr`, always before later output on stdout is returned.
        """
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None and stderr is not None
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
            for stream in (stdout, stderr):
                self._selector.register(stream, selectors.EVENT_READ)
        out = b""
        for key, _ in self._selector.select(seconds):
            chunk = os.read(key.fd, CHUNK)
            if not chunk:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is stdout:
                out, self.last_output_time = chunk, time.monotonic()
            else:
                self.stderr += chunk
                self.printed += len(chunk)
                del self.stderr[:-MAX_STDERR]
        return out if out or stdout in self._selector.get_map() else None

    @property
    def _unread(self) -> bool:
        """Return True until both stdout and stderr have ended."""
        return self._selector is not None and bool(self._selector.get_map())

    def finish(self, seconds: float, request: Struct | bytes | None = None, stop: Event | None = None) -> ExitResult:
        """Send the request and wait for the process to end; kill it on timeout or when another thread sets `stop`."""
        input_line = request_line(request) if request is not None else None
        end = time.monotonic() + seconds
        try:
            while True:
                try:
                    left = max(0.0, end - time.monotonic())
                    stdout, stderr = self._process.communicate(input_line, min(left, STOP_CHECK_SECONDS))
                    return ExitResult(self._process.returncode, stdout, stderr)
                except subprocess.TimeoutExpired:
                    input_line = None
                    if time.monotonic() >= end or (stop is not None and stop.is_set()):
                        self.kill()
                        return ExitResult(None, *self._process.communicate())
        except BaseException:
            self.kill()
            self._process.wait()
            raise


class ModuleProcess(ChildProcess):
    """A module of this program that serves requests (fwtui.common.child_protocol); `simulated`: with the GPU simulator."""

    def __init__(self, module: str, *arguments: str, simulated: bool = False):
        environment = worker_environment("simulator" if simulated else "real")
        super().__init__(module_command(module, *arguments), environment, stdin=subprocess.PIPE)

    def kill(self) -> None:
        super().kill()
        kill_tree(self.pid, self.mark)

    def finish(self, seconds: float, request: Struct | bytes | None = None, stop: Event | None = None) -> ExitResult:
        """Wait as ChildProcess.finish() does, then kill all processes that a user's file has started in it."""
        try:
            return super().finish(seconds, request, stop)
        finally:
            kill_tree(self.pid, self.mark)


def check_utf8(path: str) -> None:
    """Raise Refused if the name of the file cannot be sent to another process."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise Refused(f"the name {quoted(path)} is not UTF-8 and cannot be passed to another process; rename the file") from None


def request_line(request: Struct | bytes) -> bytes:
    """Encode a request for fwtui.common.child_protocol; return bytes unchanged. Raises Refused for a name that is not UTF-8."""
    try:
        return request if isinstance(request, bytes) else msgspec.json.encode(request) + b"\n"
    except UnicodeEncodeError as error:
        check_utf8(error.object)
        raise


Process = TypeVar("Process", bound=ChildProcess)


class Supervised(Generic[Process]):
    """A child process that is replaced after its end; `start_error` is the reason why prepare() could not start it."""

    start: Callable[[], Process]

    def __init__(self, start: Callable[[], Process] | None = None):
        """`start` may be set later, before the first use, and replaced while no process runs."""
        if start is not None:
            self.start = start
        self.child: Process | None = None
        self.start_error = ""

    def running(self) -> Process:
        """Return the process, started unless it runs. Raises OSError."""
        if self.child is None or self.child.exit_code is not None:
            self.close()
            self.child = self.start()
        return self.child

    def prepare(self) -> None:
        """Start the process unless it runs. The calling thread must outlive it (fwtui.common.signals.end_with_parent)."""
        try:
            self.running()
            self.start_error = ""
        except OSError as error:
            self.start_error = str(error)

    def take(self) -> Process:
        """Return the process, which the caller now owns. Raises OSError."""
        child, self.child = self.running(), None
        return child

    def close(self, grace: float = 0.0) -> Process | None:
        """End the process within that many seconds, and return it: its owner may take its last output."""
        child, self.child = self.child, None
        if child is not None:
            child.close(grace)
        return child
