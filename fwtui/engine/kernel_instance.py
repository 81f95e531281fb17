"""A kernel loaded on a device: built for a shape, with buffers and a graph in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from fwtui.common.errors import Refused
from fwtui.engine.engine import Check, Engine, TimedRun
from fwtui_kernels.own import NoTrial
from fwtui_kernels.plan import Buffers, Kernel, Program, Shape, Step

if TYPE_CHECKING:  # `solve` does not need it
    from fwtui.graphs.graph import GraphInput


class UnsupportedShape(Refused):
    """The kernel does not support this shape on this device."""


class DeviceUnavailable(UnsupportedShape):
    """The kernel supports no device of this machine."""


def check_supported(kernel: Kernel, shape: Shape, engine: Engine) -> None:
    """Raise UnsupportedShape if the kernel does not support the shape on this device."""
    if refusal := kernel.refuses(shape) or kernel.lacks(shape, engine.target):
        raise UnsupportedShape(refusal)


class LoadedKernel:
    """A program with its plan and its buffers, allocated until the end of its `with` block."""

    def __init__(self, kernel: Kernel, engine: Engine, program: Program, plan: Sequence[Step], buffers: Buffers):
        self.kernel, self.engine, self.program, self.plan, self.buffers = kernel, engine, program, plan, buffers
        self._pass: TimedRun | None = None
        self._captured = False

    def load(self, matrix: Any) -> None:
        """Copy in an n x n host matrix, which every restore() uses."""
        self.program.load(matrix, self.buffers, self.engine.stream)

    def restore(self) -> None:
        """Restore the loaded matrix."""
        self.program.restore(self.buffers, self.engine.stream)
        self.engine.synchronize()

    def launch(self, step: Step) -> None:
        """Start one step; asynchronous on a GPU."""
        self.program.launch(step, self.buffers, self.engine.stream)

    def run(self, check: Check = lambda: None) -> float:
        """Run one repetition from the loaded matrix; return its seconds. From the second on it is a CUDA graph, if possible.

        The first one is eager: a capture cannot include compilation.
        """
        captured = self._pass is not None and self.engine.target.backend == "cuda" and "graph" in self.kernel.launch_modes
        if self._pass is None or captured != self._captured:
            mode = "graph" if captured else "eager"
            self._pass = self.engine.timed_repetition(self.program, self.plan, self.buffers, mode)
            self._captured = captured
        self.restore()
        return self._pass(check)

    def result(self) -> Any:
        """Return the n x n values as the kernel left them, in a new array."""
        import numpy as np

        return np.array(self.program.unload(self.buffers, self.engine.stream))

    def distances(self, graph: GraphInput) -> Any:
        """Return the result in canonical form (fwtui.graphs.canonical)."""
        from fwtui.graphs.canonical import canonical

        return canonical(self.result(), graph, self.program.shape.dtype)


@contextmanager
def load_kernel(
    kernel: Kernel,
    shape: Shape,
    engine: Engine,
    matrix: Any = None,
    plan: Sequence[Step] | None = None,
    stage: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
) -> Iterator[LoadedKernel]:
    """Build the kernel, allocate its buffers, load the matrix if given; free the buffers afterwards. Raises UnsupportedShape.

    `plan` defaults to the kernel's plan for the shape; `stage("allocate")` is entered around the
    allocation.
    """
    if plan is None:
        check_supported(kernel, shape, engine)
        if kernel.ordered is not None and matrix is not None:
            shape = kernel.ordered(shape, matrix)
        plan = list(kernel.plan(shape, False))
    try:
        program = engine.build(kernel, shape)
    except NoTrial as lacking:
        raise DeviceUnavailable(str(lacking)) from None
    with stage("allocate"):
        it = LoadedKernel(kernel, engine, program, plan, program.allocate())
    try:
        if matrix is not None:
            it.load(matrix)
        yield it
        program.free()  # after a failure, other ranks may be inside a repetition, and receive no order
    finally:
        it.buffers, it._pass = (), None
