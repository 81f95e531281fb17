"""A job of several ranks on this machine, started by mpiexec, which forwards requests and events."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress

from fwtui.common.child_process import module_command
from fwtui.common.errors import Corrupt
from fwtui.common.text import MAX_LENGTH, sanitise
from fwtui.experiment.device import places
from fwtui.live.event_child import EventChild, describe_exit
from fwtui.machine.device_choice import mpiexec
from fwtui.stream.codec import Line, decode, split

MODULE = "fwtui.measure.rank_main"
# the ranks' devices, the heartbeat timeout in seconds, the session's start in monotonic seconds, and environment variables
StartJob = Callable[[str, float, float, Mapping[str, str]], EventChild]
_EVENT = b'{"kind":'
_ROLL = re.compile(rb"ranks( \d+)+")  # fwtui.measure.rank_main
_MAX_OUTPUT = 64 * 1024
_CLEANS_UP = 0.5  # seconds in which mpiexec removes its temporary files
# messages of mpiexec (MPICH and Open MPI) about a process that died; the PID that MPICH names may be another one's
_RANK = re.compile(r"\brank (\d+)\b")
_SIGNAL = re.compile(r"\bsignal (\d+)")
_CODE = re.compile(r"EXIT CODE: (\d+)")
_AS_ROOT = "detected an attempt to run as root"  # Open MPI's mpiexec; its message has the variables at the ends of lines
_ROOT_REFUSED = (
    "mpiexec of Open MPI does not start ranks as root; set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, "
    "or run fwtui as another user"
)
_FAILED = re.compile(r"^\[(mpiexec|proxy:\d+)@", re.M)  # MPICH's mpiexec itself failed, writing to ranks that it had just killed


class MpiJob(EventChild):
    """mpiexec and its ranks, one for each of the devices. Raises Refused if there is no MPI."""

    called, after_death = "mpiexec", "the next run starts new ranks"

    def __init__(
        self,
        devices: str,
        timeout: float,
        origin: float,
        environment: Mapping[str, str],
        launcher: str = "",
        module: str = MODULE,
    ):
        """`launcher` is the path of an mpiexec, found by mpiexec() by default; `module` is the module of each rank."""
        self.places = places(devices)
        launcher = launcher or mpiexec()
        self._output = bytearray()  # mpiexec's own output
        self.pids: tuple[int, ...] = ()  # process ids of the ranks
        # mpiexec kills all ranks when one has died, and may then name another one
        self._first_end, self._first = ExitWatcher(len(self.places)), None
        job = module_command(module, "--devices", devices, "--timeout", repr(timeout), "--origin", repr(origin))
        job += ["--lifelines", *self._first_end.paths]
        try:
            super().__init__([launcher, "-n", str(len(self.places)), *job], environment)
        except BaseException:
            self._first_end.close()
            raise

    @property
    def workers(self) -> tuple[int, ...]:
        return self.pids

    @property
    def last_output(self) -> str:
        output = "\n".join(
            sanitise(line) for line in bytes(self._output).decode("utf-8", "replace").splitlines() if line.strip(" =")
        )
        return f"{super().last_output}\n{output}".strip()[-MAX_LENGTH:]

    @property
    def refused_root(self) -> bool:
        """True if mpiexec has started no rank because this user is root."""
        return not self.pids and _AS_ROOT in self.last_output

    @property
    def death(self) -> str:
        if self.refused_root:
            return _ROOT_REFUSED
        rank, how = self._dead
        how = how and f" ({how})"
        if rank is None:
            return f"one of the ranks died{how}" if self.pids and self._output else super().death
        gpu = self.places[rank].gpu
        return f"rank {rank} ({'CPU' if gpu is None else f'GPU {gpu}'}) died{how}"

    @property
    def killed(self) -> bool:
        return super().killed or "signal 9" in self._dead[1]

    @property
    def _dead(self) -> tuple[int | None, str]:
        """The rank that died first and the cause; None and empty text if unknown."""
        output = self.last_output
        rank, ended, code = _RANK.search(output), _SIGNAL.search(output), _CODE.search(output)
        own = "" if _FAILED.search(output) else describe_exit(self.exit_code or 0)
        how = describe_exit(-int(ended[1])) if ended else describe_exit(int(code[1])) if code else own
        if self._first is None and rank and int(rank[1]) < len(self.places):
            return int(rank[1]), how
        return self._first, how

    def kill(self) -> None:
        """Kill the ranks, and mpiexec after it has removed its temporary files."""
        if self.exit_code is None:
            for pid in self.pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLEANS_UP)
        super().kill()

    def _take(self, chunks: Iterator[bytes]) -> None:
        try:
            for raw in split(chunks):
                if raw:
                    self._take_line(raw)
            self._first = self._first_end.found()
        finally:
            self._first_end.close()

    def _take_line(self, raw: bytes) -> None:
        if raw.startswith(_EVENT):
            try:
                self.lines.append(Line(raw, decode(raw)))
            except Corrupt as damage:
                self.lines.append(damage)
        elif _ROLL.fullmatch(raw) and not self.pids:
            self._first_end.watch()  # before another process can decide whom to kill
            self.pids = tuple(map(int, raw.split()[1:]))
        else:
            self._output += raw + b"\n"
            del self._output[:-_MAX_OUTPUT]


class ExitWatcher:
    """Finds the process that ended first: each opens one of `paths` for writing until its end.

    The paths are pipes, and epoll reports them in the order in which they close (Linux only; elsewhere `paths` is empty). Raises
    OSError if no more files can be opened.
    """

    def __init__(self, processes: int, pipe: Callable[[], tuple[int, int]] = os.pipe):
        self.paths: list[str] = []
        self._process_of: dict[int, int] = {}  # key: the descriptor that this process reads
        self._all, self._write_ends = ExitStack(), ExitStack()
        self._closings: select.epoll | None = None
        if not hasattr(select, "epoll"):
            return
        with self._all as undo:
            undo.push(self._write_ends)
            for process in range(processes):
                read, write = pipe()
                undo.callback(os.close, read)
                self._write_ends.callback(os.close, write)
                self._process_of[read] = process
                self.paths.append(f"/proc/{os.getpid()}/fd/{write}")
            self._all = undo.pop_all()

    def watch(self) -> None:
        """Start after all processes have opened their pipes. Without free file descriptors, found() stays None."""
        self._write_ends.close()
        if self.paths:
            with suppress(OSError):
                closings = self._all.enter_context(select.epoll())
                for read in self._process_of:
                    closings.register(read, select.EPOLLHUP)
                if not closings.poll(0):  # no pipe has closed yet, so every process did open its own
                    self._closings = closings

    def found(self) -> int | None:
        """Return the number of the process that ended first; None if unknown."""
        ended = self._closings.poll(0) if self._closings is not None else []
        return self._process_of[ended[0][0]] if ended else None

    def close(self) -> None:
        self._closings = None
        self._all.close()
