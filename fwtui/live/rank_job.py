"""A job of several ranks on this machine, started by mpiexec, which forwards requests and events."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from fwtui.common.child_process import python
from fwtui.common.errors import Corrupt, Refused
from fwtui.common.text import MAX_LENGTH, clean
from fwtui.experiment.devices import places
from fwtui.live.child import EventChild, epitaph
from fwtui.machine.hardware import install_command
from fwtui.stream.codec import Line, decode, split

_EVENT = b'{"kind":'
_ROLL = b"ranks "  # fwtui.measure.rank_job
_WORDS_KEPT = 64 * 1024
# what mpiexec (of MPICH and of Open MPI) and srun say of a process that died
_PID = re.compile(r"\bPID (\d+)")
_RANK = re.compile(r"\b(?:rank|task) (\d+)\b")
_SIGNAL = re.compile(r"\bsignal (\d+)")
_CODE = re.compile(r"EXIT CODE: (\d+)")


def mpiexec() -> str:
    """The path of mpiexec. Raises Refused if it or mpi4py is missing."""
    beside = Path(sys.executable).parent / "mpiexec"  # that of the wheels of an MPI
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    missing = "mpi4py is not installed" if find_spec("mpi4py") is None else "there is no mpiexec here"
    if found is None or find_spec("mpi4py") is None:
        raise Refused(f"several devices need MPI, and {missing}; run: {install_command('fwtui[cluster]')}")
    return found


class RankJob(EventChild):
    """mpiexec and its ranks, one for each of the devices. Raises Refused if there is no MPI."""

    called, next = "mpiexec", "a new job"

    def __init__(self, devices: str, timeout: float, origin: float, environment: Mapping[str, str]):
        self.places = places(devices)
        self._words = bytearray()  # mpiexec's own, on stdout
        self._pids: tuple[int, ...] = ()  # of the ranks
        job = python("fwtui.measure.rank_job", "--devices", devices, "--timeout", repr(timeout), "--origin", repr(origin))
        super().__init__([mpiexec(), "-n", str(len(self.places)), *job], environment, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.listen_to(os.dup(self._process.stdout.fileno()))
        self._process.stdout.close()

    @property
    def last_words(self) -> str:
        own = "\n".join(clean(line) for line in bytes(self._words).decode("utf-8", "replace").splitlines() if line.strip(" ="))
        return f"{super().last_words}\n{own}".strip()[-MAX_LENGTH:]

    @property
    def death(self) -> str:
        rank, how = self._dead
        if rank is None:
            return super().death
        gpu = self.places[rank].gpu
        return f"rank {rank} ({'CPU' if gpu is None else f'GPU {gpu}'}) died ({how})"

    @property
    def killed(self) -> bool:
        return super().killed or "signal 9" in self._dead[1]

    @property
    def _dead(self) -> tuple[int | None, str]:
        """The rank that died first, as far as mpiexec said, and how."""
        words = self.last_words
        pid, rank, ended = _PID.search(words), _RANK.search(words), _SIGNAL.search(words)
        code = _CODE.search(words)
        how = epitaph(-int(ended[1])) if ended else epitaph(int(code[1]) if code else self.exit_code or 0)
        if pid and int(pid[1]) in self._pids:
            return self._pids.index(int(pid[1])), how
        return (int(rank[1]) if rank and int(rank[1]) < len(self.places) else None), how

    def _take(self, chunks: Iterator[bytes]) -> None:
        for raw in split(chunks):
            if raw is not None and raw.startswith(_EVENT):
                try:
                    self.lines.append(Line(raw, decode(raw)))
                except Corrupt as damage:
                    self.lines.append(damage)
            elif raw is not None and raw.startswith(_ROLL) and not self._pids:
                self._pids = tuple(map(int, raw.split()[1:]))
            elif raw:
                self._words += raw + b"\n"
                del self._words[:-_WORDS_KEPT]
