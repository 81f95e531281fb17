"""`python -P -m fwtui.measure.submission`: load one kernel and compute what the judge asks for (fwtui.measure.judge).

Nothing that is said here is believed but distances, which the judge compares with its own; it has a clock of its own, too.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from fwtui.common.serve import Parent, serve
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.loaded import LoadedKernel, NotHere, NotTaken, loaded
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import kernel_named
from fwtui.measure.trial_cases import failure, tile_of
from fwtui.stream.grades import Ask, SubmissionReply, SubmissionRequest
from fwtui_kernels.own import check, load
from fwtui_kernels.plan import Kernel, Shape

LARGEST_FILE = 2**30  # bytes that it may write into one file


class _Computing:
    """A kernel loaded for one shape after the other; it stays loaded while graphs of one shape come."""

    def __init__(self, kernel: Kernel, engine: Engine):
        self._kernel, self._engine = kernel, engine
        self._held = ExitStack()
        self._shape: Shape | None = None
        self._it: LoadedKernel

    def answer(self, ask: Ask) -> tuple[SubmissionReply, list[np.ndarray]]:
        """The distances as the kernel has them, once for each run."""
        kernel, simulated = self._kernel, self._engine.target.backend == "simulator"
        random.seed(1)  # the simulator's order of threads
        if ask.dtype not in kernel.dtypes:
            return SubmissionReply(refused=f"it does not take {ask.dtype}"), []
        if ask.n > kernel.max_n:
            return SubmissionReply(refused=f"it takes at most {kernel.max_n} vertices"), []
        tile = tile_of(kernel, True) if simulated else kernel.tile_for(ask.n) or 1
        shape = Shape(ask.n, tile, ask.dtype, nonnegative=ask.nonnegative, options=kernel.defaults)
        try:
            self._load(shape)
        except NotHere as lacking:
            return SubmissionReply(refused=str(lacking), simulates=False), []
        except NotTaken as refusal:
            return SubmissionReply(refused=f"it does not take this graph: {refusal}"), []
        self._it.load(np.fromfile(ask.graph, ask.dtype).reshape(ask.n, ask.n))
        seconds, arrays = 0.0, []
        for _ in range(ask.runs):
            if ask.part < 1.0:
                self._it.restore()
                for step in self._it.plan[: int(len(self._it.plan) * ask.part)]:
                    self._it.launch(step)
                self._engine.synchronize()
            else:
                seconds = self._it.run()
            raw = self._it.result()
            if raw.shape != (ask.n, ask.n):
                raise ValueError(f"its distances are an array of {raw.shape}, and must be of {(ask.n, ask.n)}")
            arrays.append(np.ascontiguousarray(raw, dtype=ask.dtype))
        return SubmissionReply(arrays=len(arrays), seconds=seconds), arrays

    def _load(self, shape: Shape) -> None:
        if shape != self._shape:
            self._held.close()
            self._shape = None
            self._it = self._held.enter_context(loaded(self._kernel, shape, self._engine))
            self._shape = shape


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
        self._computing: _Computing

    def answer(self, request: SubmissionRequest | Ask, parent: Parent) -> None:
        try:
            if isinstance(request, SubmissionRequest):
                parent.send(self._load(request))
                return
            said, arrays = self._computing.answer(request)
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
        kernel = _loaded(submitted)
        self._computing = _Computing(kernel, engine_for(CPU if kernel.backend == "cpu" else submitted.device))
        return SubmissionReply(backend=kernel.backend, simulates=kernel.simulates)


def _ready() -> None:
    faulthandler.disable()  # its words would count as the submission's
    np.seterr(all="ignore")


if __name__ == "__main__":
    serve(SubmissionRequest | Ask, _Submission().answer, ready=_ready)
