"""Beats between rank 0 and the others, by which a rank that has stopped is found, and what a rank says before it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fwtui.stream import events

_BEAT, _FAULT = range(2)  # tags
_LOOKS_EVERY, _DRIVES_EVERY = 0.05, 0.002  # seconds; a look also drives MPI's broadcasts while a kernel runs
_STAGGER, _STAGGERED = 0.5, 3  # seconds between the ranks that find rank 0 silent, and how many of them; the first one speaks
_HEARD_WITHIN = 1.0  # seconds in which rank 0 hands on what another rank says


class Heartbeats:
    """A rank's own. Rank 0 hears all others, and they hear rank 0, while either side is busy with a command.

    `silent` is called with a rank that has not been heard for `timeout` seconds, `told` in rank 0 with another one's fault.
    """

    def __init__(
        self,
        comm: Any,
        timeout: float,
        busy_since: Callable[[], float | None],
        silent: Callable[[int], None],
        told: Callable[[events.Fault], None],
    ):
        self._comm, self._timeout, self._busy_since, self._silent, self._told = comm, timeout, busy_since, silent, told
        self._others: Sequence[int] = range(1, comm.size) if comm.rank == 0 else (0,)
        if comm.rank:
            self._timeout += _STAGGER * min(comm.rank - 1, _STAGGERED)
        self._heard = dict.fromkeys(self._others, time.monotonic())
        self._others_busy = dict.fromkeys(self._others, False)
        self._sent: dict[int, Any] = {}  # the last beat's request, by rank
        self._said_busy = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(timeout / 8,), name="heartbeats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hear and say nothing more: MPI may end."""
        self._over.set()
        self._thread.join()

    def rest(self) -> None:
        """No longer busy: this rank may be silent from now on, as a long call may hold the interpreter."""
        with self._lock:
            if self._said_busy:
                self._say()

    def tell_first(self, fault: events.Fault) -> None:
        """Give rank 0 the time to hand on what ends this rank; returns only if it did not."""
        with suppress(Exception):
            self._comm.isend(fault, 0, _FAULT)
            time.sleep(_HEARD_WITHIN)

    def _beat(self, every: float) -> None:
        due = 0.0
        while not self._over.wait(_LOOKS_EVERY if self._busy_since() is None else _DRIVES_EVERY):
            now = time.monotonic()
            if now >= due:
                due = now + every
                with self._lock:
                    self._say()
            self._listen()

    def _say(self) -> None:
        self._said_busy = self._busy_since() is not None
        for rank in self._others:
            sent = self._sent.get(rank)
            if sent is None or sent.Test():  # one that has stopped takes none
                self._sent[rank] = self._comm.isend(self._said_busy, rank, _BEAT)

    def _listen(self) -> None:
        now, since = time.monotonic(), self._busy_since()
        for rank in self._others:
            while self._comm.iprobe(rank, _BEAT):
                self._others_busy[rank] = self._comm.recv(source=rank, tag=_BEAT)
                self._heard[rank] = now
            if self._comm.rank == 0 and self._comm.iprobe(rank, _FAULT):
                self._told(self._comm.recv(source=rank, tag=_FAULT))
            busy = since is not None or self._others_busy[rank]
            if busy and now - max(self._heard[rank], since or 0.0) > self._timeout:
                self._silent(rank)
