"""A watch over a worker that runs a user's file: what takes more than it may, or is silent for too long, is ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from fwtui.common.process_limits import ProcessLimits, end_family, family
from fwtui.live.child import EventChild
from fwtui.stream import requests

SILENCE = 120.0  # seconds without a word, whatever the size of the graph
LOOKS_EVERY = 1.0  # seconds: a look takes some milliseconds, which a run that is timed must not notice
MATRICES = 8  # of the graph's size on the host, beside what a small graph takes: a run keeps, copies and verifies some


def guard(worker: EventChild, request: requests.Work, busy: Callable[[], bool], silence: float = SILENCE) -> None:
    """Watch the worker in a thread as long as it is `busy` with a request for a user's file; then end what that started."""
    if isinstance(request, requests.ProbeRequest) or not request.own:
        return
    memory = ProcessLimits().memory + MATRICES * 4 * request.experiment.n**2 * request.experiment.graphs / 2**30
    limits, begun = ProcessLimits(memory=memory), time.monotonic()

    def watch() -> None:
        while busy() and worker.exit_code is None:
            worker.excess = limits.excess(family(worker.pid), worker.printed)
            if time.monotonic() - max(begun, worker.last_heard) > silence:
                worker.excess = f"says nothing for {silence:g} s: a loop that never ends, or threads that wait for others"
            if worker.excess:
                worker.kill()
                break
            time.sleep(LOOKS_EVERY)
        end_family(worker.pid, worker.mark, itself=False)

    Thread(target=watch, name="guard").start()
