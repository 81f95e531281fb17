"""`python -P -m fwtui.measure.submission`: load one kernel and compute what the judge asks for (fwtui.measure.judge).

Nothing that is said here is believed but distances,
which the judge compares with its own, and the seconds of a pass.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fwtui.common.serve import Parent, serve
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.loaded import LoadedKernel, NotTaken, loaded
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import kernel_named
from fwtui.measure.trial_cases import failure, graph_and_shape, tile_of
from fwtui.stream.grades import Ask, SubmissionReply, SubmissionRequest
from fwtui_kernels.own import check, load
from fwtui_kernels.plan import Kernel

PASSES_SECONDS, MOST_PASSES = 0.5, 20  # that are timed in one turn
LARGEST_FILE = 2**30  # bytes that it may write into one file


def computed(kernel: Kernel, engine: Engine, ask: Ask) -> tuple[SubmissionReply, list[np.ndarray]]:
    """The distances as the kernel has them, once for each run; of what is timed those of the last pass."""
    asked, simulated = ask.experiment, engine.target.backend == "simulator"
    random.seed(1)  # the simulator's order of threads
    if asked.dtype not in kernel.dtypes:
        return SubmissionReply(refused=f"it does not take {asked.dtype}"), []
    if asked.n > kernel.max_n:
        return SubmissionReply(refused=f"it takes at most {kernel.max_n} vertices"), []
    tile = tile_of(kernel, True) if simulated else kernel.tile_for(asked.n) or 1
    graph, shape = graph_and_shape(kernel, asked, tile, {}, engine)
    try:
        with loaded(kernel, shape, engine, graph.matrix) as it:
            return _runs(it, ask)
    except NotTaken as refusal:
        return SubmissionReply(refused=f"it does not take this graph: {refusal}"), []


def _runs(it: LoadedKernel, ask: Ask) -> tuple[SubmissionReply, list[np.ndarray]]:
    n = ask.experiment.n

    def distances() -> np.ndarray:
        raw = it.result()
        if raw.shape != (n, n):
            raise ValueError(f"its distances are an array of {raw.shape}, and must be of {(n, n)}")
        return np.ascontiguousarray(raw, dtype=ask.experiment.dtype)

    it.run()
    arrays = [distances()]
    if not ask.timed:
        for _ in range(ask.runs - 1):
            it.run()
            arrays.append(distances())
        return SubmissionReply(arrays=len(arrays)), arrays
    it.run()
    seconds: list[float] = []
    while not seconds or (sum(seconds) < PASSES_SECONDS and len(seconds) < MOST_PASSES):
        seconds.append(it.run())
    return SubmissionReply(arrays=1, seconds=tuple(seconds)), [distances()]


def _loaded(submitted: SubmissionRequest) -> Kernel:
    if submitted.rung:
        return kernel_named(submitted.rung)
    path = Path(submitted.path)
    kernel = load(path, "submission")
    check(kernel, path)
    return kernel


def _forks_not(event: str, _: object) -> None:
    if event in ("os.fork", "os.forkpty"):
        raise RuntimeError("it forks, and a submission is one process")


def _limit_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Submission:
    """The kernel that this process runs."""

    def __init__(self) -> None:
        self._path = ""
        self._kernel: Any = None
        self._engine: Any = None

    def answer(self, request: SubmissionRequest | Ask, parent: Parent) -> None:
        try:
            if isinstance(request, SubmissionRequest):
                parent.send(self._load(request))
                return
            said, arrays = computed(self._kernel, self._engine, request)
            parent.send(said)
            for array in arrays:
                parent.write(array.data.cast("B"))
        except (Exception, SystemExit) as error:
            parent.send(SubmissionReply(wrong=failure(error, Path(self._path) if self._path else None)))
            parent.leave()

    def _load(self, submitted: SubmissionRequest) -> SubmissionReply:
        self._path = submitted.path
        os.chdir(submitted.folder or ".")
        if submitted.path:
            _limit_files()
            sys.addaudithook(_forks_not)
        self._kernel = _loaded(submitted)
        self._engine = engine_for(CPU if self._kernel.backend == "cpu" else submitted.device)
        return SubmissionReply(backend=self._kernel.backend)


def _ready() -> None:
    faulthandler.disable()  # its words would count as the submission's
    np.seterr(all="ignore")


if __name__ == "__main__":
    serve(SubmissionRequest | Ask, _Submission().answer, ready=_ready)
