"""`python -P -m fwtui.measure.submission`: load one kernel and compute what the judge asks for (fwtui.measure.judge).

Nothing that is said here is believed but distances, which the judge compares with its own; it has a clock of its own, too.
"""

from __future__ import annotations

import faulthandler
import os
import random
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from fwtui.analysis.plan_checks import check_plan
from fwtui.common.serve import Parent, serve
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.loaded import LoadedKernel, NotHere, NotTaken, loaded
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import kernel_named
from fwtui.measure.trial_cases import failure, misuse_in, tile_of, watching
from fwtui.stream.grades import MOST_TILE, Ask, SubmissionReply, SubmissionRequest
from fwtui_kernels.own import NoTrial, OwnKernelError, check, load
from fwtui_kernels.plan import Kernel, Shape

LARGEST_FILE = 2**30  # bytes that it may write into one file
RUNG = re.compile(r"fwtui_kernels\.k\d\d_\w+")  # modules with a kernel of this program


def _confine(others: Iterable[str]) -> None:
    """Have this process neither fork nor open files of others, by Python's own functions."""
    paths = frozenset(map(os.path.realpath, others))

    def audit(event: str, arguments: Any) -> None:
        if event in ("os.fork", "os.forkpty"):
            raise RuntimeError("it forks, and a submission is one process")
        if (
            event == "open"
            and isinstance(arguments[0], str | bytes | os.PathLike)
            and os.path.realpath(os.fsdecode(arguments[0])) in paths
        ):
            raise RuntimeError(f"it opens {os.path.basename(os.fsdecode(arguments[0]))}, which is another submission's")

    sys.addaudithook(audit)


class SubmittedKernel:
    """The kernel that this process runs; it stays loaded while graphs of one shape come."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._held = ExitStack()
        self._shape: Shape | None = None
        self._kernel: Kernel
        self._engine: Engine
        self._it: LoadedKernel
        self._looked_at: Counter[Any] = Counter()  # accesses to memory by function, in the simulator

    def answer(self, request: SubmissionRequest | Ask, parent: Parent) -> None:
        try:
            reply, distances = self.computed(request) if isinstance(request, Ask) else (self._loaded(request), None)
            parent.send(reply)
            if distances is not None:
                parent.write(distances.data.cast("B"))
        except (NotHere, NoTrial) as lacking:
            parent.send(SubmissionReply(refused=str(lacking), simulates=False))
        except (Exception, SystemExit) as error:
            parent.send(SubmissionReply(wrong=failure(error, self._path)))
            parent.leave()

    def _loaded(self, submitted: SubmissionRequest) -> SubmissionReply:
        os.chdir(submitted.folder or ".")
        if submitted.path:
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            _confine(submitted.others)
            self._path = Path(submitted.path)
            kernel = load(self._path, "submission")
            check(kernel, self._path)
            if kernel.default_tile > MOST_TILE:
                most = f"grading takes up to {MOST_TILE:,}"
                raise OwnKernelError(f"the default tile of {self._path.name} is {kernel.default_tile:,}; {most}")
        else:
            kernel = kernel_named(submitted.rung)
        self._kernel, self._engine = kernel, engine_for(CPU if kernel.backend == "cpu" else submitted.device)
        return SubmissionReply(
            backend=kernel.backend,  # type: ignore[arg-type]  # as all that follows it was checked, and is by who reads it
            simulates=kernel.simulates,
            dtypes=kernel.dtypes,  # type: ignore[arg-type]
            tile=tile_of(kernel, self._engine.target.backend == "simulator"),
            max_n=kernel.max_n,
            plan=next(iter(check_plan(kernel)), "") if submitted.path else "",
        )

    def computed(self, ask: Ask) -> tuple[SubmissionReply, np.ndarray | None]:
        """The distances as the kernel has them."""
        kernel, simulated = self._kernel, self._engine.target.backend == "simulator"
        if ask.dtype not in kernel.dtypes:
            return SubmissionReply(refused=f"it does not take {ask.dtype}"), None
        if ask.n > kernel.max_n:
            return SubmissionReply(refused=f"it takes at most {kernel.max_n} vertices"), None
        tile = tile_of(kernel, True) if simulated else kernel.tile_for(ask.n) or 1
        shape = Shape(ask.n, tile, ask.dtype, nonnegative=ask.nonnegative, options=kernel.defaults)
        try:
            if shape != self._shape:
                self._held.close()
                self._shape = None
                self._it = self._held.enter_context(loaded(kernel, shape, self._engine))
                self._shape = shape
        except NotHere:
            raise
        except NotTaken as refusal:
            return SubmissionReply(refused=f"it does not take this graph: {refusal}"), None
        self._it.load(np.fromfile(ask.graph, ask.dtype).reshape(ask.n, ask.n))
        seconds, log = 0.0, None
        if not ask.half:
            with watching(ask.watched and simulated, self._looked_at) as log:
                seconds = self._it.run()
        elif not self._launch_half(ask.half == "first"):
            return SubmissionReply(refused="no half of its steps does anything"), None
        raw = self._it.result()
        if raw.shape != (ask.n, ask.n):
            raise ValueError(f"its distances are an array of {raw.shape}, and must be of {(ask.n, ask.n)}")
        reply = SubmissionReply(computed=True, seconds=seconds, misuse=misuse_in(log, False), rungs=self._rungs())
        return reply, np.ascontiguousarray(raw, dtype=ask.dtype)

    def _launch_half(self, first: bool) -> bool:
        """Carry out half of the steps, the middle one among them; or none, where the others relax nothing."""
        plan = self._it.plan
        half = min((len(plan) + 1) // 2, len(plan) - 1)
        cut = half if first else len(plan) - half
        launched, others = (plan[:cut], plan[cut:]) if first else (plan[cut:], plan[:cut])
        if not any(step.cost.relaxations for step in others):
            return False
        self._it.restore()
        for step in launched:
            self._it.launch(step)
        self._engine.synchronize()
        return True

    def _rungs(self) -> tuple[str, ...]:
        """Those that the user's file has imported: nothing else here imports any."""
        modules = [module for name, module in sys.modules.items() if self._path and RUNG.fullmatch(name)]
        return tuple(module.KERNEL.id for module in modules)


def _ready() -> None:
    faulthandler.disable()  # its words would count as the submission's
    np.seterr(all="ignore")
    random.seed(1)  # the simulator's order of threads


if __name__ == "__main__":
    serve(SubmissionRequest | Ask, SubmittedKernel().answer, ready=_ready)
