"""CUDA: streams for lanes, events for clocks, and the same launches either eager or captured in a graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui.engine.engine import Check, Engine, Pass, PhasePass, PhaseStretch, StretchTimes, Tell
from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui_kernels.compiled.cuda_driver import CudaError, checked
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Buffers, Program, Step, Target

if TYPE_CHECKING:
    from fwtui.experiment.generate import Recipe
    from fwtui.stream.events import Device

GRAPH = "graph"
TELL_EVERY = 0.05  # seconds between checks of a warm-up's progress


class LaunchGraph:
    """Launches captured once, with the addresses at capture time."""

    def __init__(self, capture: Callable[[], None], stream: Any):
        handle = int(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        # memory that is freed here would end the capture
        with cuda.defer_cleanup():
            checked(driver.cuStreamBeginCapture(handle, mode))
            try:
                capture()
            finally:
                ended = driver.cuStreamEndCapture(handle)
        graph = checked(ended)
        try:
            # without it all nodes run at the priority of the launching stream, and no lane goes first
            flags = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
            self._executable = checked(driver.cuGraphInstantiate(graph, int(flags)))
        finally:
            driver.cuGraphDestroy(graph)
        checked(driver.cuGraphUpload(self._executable, handle))

    def launch(self, stream: Any) -> None:
        checked(driver.cuGraphLaunch(self._executable, int(stream.handle)))

    def __del__(self) -> None:
        if hasattr(self, "_executable"):
            driver.cuGraphExecDestroy(self._executable)


def clocked(stream: Any, launch: Callable[..., object]) -> Callable[..., float]:
    """Launches, and returns the seconds on the GPU."""
    begin, end = cuda.event(timing=True), cuda.event(timing=True)

    def burst(*arguments: Any) -> float:
        begin.record(stream)
        launch(*arguments)
        end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) / 1000

    return burst


def _fill(out: Any, recipe: Recipe) -> None:
    from fwtui.engine.generate_cuda import fill  # which brings numba

    fill(out, recipe)


class CudaEngine(Engine):
    """One GPU and one context. Lane 0 is `stream`; each further lane has its own stream, higher lanes with higher priority."""

    timed = True

    def __init__(self, device: DeviceId = FIRST_GPU):
        self.device = device
        self._lanes: dict[int, Any] = {}
        self.activate()
        with self._device_words():
            gpu = cuda.get_current_device()
            self.gpu, self.fill = gpu, _fill
            self.name = gpu.name.decode()
            self.stream = self._lanes[0] = cuda.stream()
        self.target = Target(
            backend="cuda",
            cc=tuple(gpu.compute_capability),
            multiprocessors=gpu.MULTIPROCESSOR_COUNT,
            shared_per_block=gpu.MAX_SHARED_MEMORY_PER_BLOCK,
        )

    def facts(self, t: float) -> Device:
        """The GPU's facts from CUDA; peak bandwidth is memory clock x 2 (double data rate) x bus width."""
        from fwtui.stream.events import Device

        gpu = self.gpu
        clock_khz, bus_bits = getattr(gpu, "MEMORY_CLOCK_RATE", 0), getattr(gpu, "GLOBAL_MEMORY_BUS_WIDTH", 0)
        return Device(
            t=t,
            gpu=self.device.index,
            name=self.name,
            compute_capability=self.target.cc,
            multiprocessors=gpu.MULTIPROCESSOR_COUNT,
            memory_bytes=cuda.memory_info().total,
            peak_bytes_per_second=2 * clock_khz * 1000 * bus_bits / 8 or None,
            max_clock_mhz=gpu.CLOCK_RATE / 1000 or None,
            l2_bytes=gpu.L2_CACHE_SIZE or None,
            cuda="{}.{}".format(*cuda.toolkit_version()),
        )

    @staticmethod
    @contextmanager
    def _device_words() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise CudaError(str(error)) from error

    def activate(self) -> None:
        with self._device_words():
            cuda.select_device(self.device.index)

    def free_bytes(self) -> int:
        return cuda.memory_info().free

    def synchronize(self) -> None:
        checked(driver.cuCtxSynchronize())

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, tell: Tell) -> None:
        launched, batch = 0, 1
        while launched < len(plan):
            steps = plan[launched : launched + batch]
            begin = time.perf_counter()
            for step in steps:
                check()
                program.launch(step, buffers, self.stream)
            self.stream.synchronize()
            launched += len(steps)
            tell(launched)
            seconds = time.perf_counter() - begin
            batch = max(1, min(2 * batch, int(batch * TELL_EVERY / max(seconds, 1e-6))))

    def clean_pass(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> Pass:
        start = clocked(self.stream, self._launching(partial(self._launch_lanes, program, plan, buffers), mode))

        def run(check: Check) -> float:
            self.stream.synchronize()
            check()
            return start(check)

        return run

    def phase_pass(self, program: Program, parts: Sequence[PhaseStretch], buffers: Buffers, mode: str) -> PhasePass:
        clocks = [cuda.event(timing=True) for _ in range(len(parts) + 1)]

        def all_steps(check: Check) -> None:
            clocks[0].record(self.stream, mode == GRAPH)
            for part, clock in zip(parts, clocks[1:], strict=True):
                for step in part.steps:
                    check()
                    program.launch(step, buffers, self.stream)
                clock.record(self.stream, mode == GRAPH)

        # with eager launches, gaps between them would count as phases at small sizes
        start = self._launching(all_steps, mode)

        def run(check: Check) -> StretchTimes:
            self.stream.synchronize()
            start(check)
            self.stream.synchronize()
            return StretchTimes([early.elapsed_time(late) / 1000 for early, late in pairwise(clocks)])

        return run

    def _launching(self, all_steps: Callable[[Check], None], mode: str) -> Callable[[Check], None]:
        """A function that starts all steps, eagerly or as a captured graph; a capture is not interrupted."""
        if mode != GRAPH:
            return all_steps
        graph = LaunchGraph(lambda: all_steps(lambda: None), self.stream)
        return lambda check: graph.launch(self.stream)

    def _lane(self, lane: int) -> Any:
        if lane not in self._lanes:
            # lower is more urgent: blocks of such a stream get free multiprocessors first, also in a graph
            handle = checked(driver.cuStreamCreateWithPriority(int(driver.CUstream_flags.CU_STREAM_DEFAULT), -lane))
            self._lanes[lane] = cuda.external_stream(int(handle))
        return self._lanes[lane]

    def _launch_lanes(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check) -> None:
        """Launch all steps on their lanes, with event record and wait for `after`. Eager and captured runs share this code."""
        awaited = {earlier for step in plan for earlier in step.after}
        forked = {0}
        fork = None  # created only for several lanes: its end may free memory inside the clock
        if any(step.lane for step in plan):
            fork = cuda.event(timing=False)
            fork.record(self.stream)
        done: dict[int, Any] = {}
        for index, step in enumerate(plan):
            check()
            stream = self._lane(step.lane)
            if fork is not None and step.lane not in forked:
                forked.add(step.lane)
                fork.wait(stream)
            for earlier in step.after:
                done[earlier].wait(stream)
            program.launch(step, buffers, stream)
            if index in awaited:
                done[index] = cuda.event(timing=False)
                done[index].record(stream)
        for lane in forked - {0}:
            join = cuda.event(timing=False)
            join.record(self._lanes[lane])
            join.wait(self.stream)
