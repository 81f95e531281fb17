"""The GPU engine: CUDA streams, event timing, and launches that are either eager or captured in a graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cuda import core

from fwtui.common.gc_pause import paused
from fwtui.engine.engine import Check, Engine, PhaseRun, PhaseStretch, Report, StretchTimes, TimedRun
from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui_kernels.compiled import driver_calls
from fwtui_kernels.plan import Buffers, Program, Step, Target

if TYPE_CHECKING:
    from fwtui.experiment.generate import Recipe
    from fwtui.stream.events import Device

cuda: Any = core  # a package of compiled modules
GRAPH = "graph"
REPORT_EVERY = 0.05  # seconds between checks of a warm-up's progress


def capture_graph(launch: Callable[[], object], stream: Any) -> Any:
    """Capture launches once, with the current addresses, in a cuda.core Graph that is ready to launch."""
    builder = stream.create_graph_builder()
    with paused():  # memory that garbage collection frees would end the capture
        builder.begin_building("thread_local")
        try:
            launch()
            builder.end_building()
        except BaseException:
            with suppress(Exception):  # the failure may have invalidated the capture
                builder.close()
            raise
    # all nodes run at the priority of the launching stream unless nodes have priorities, so no stream has precedence
    return builder.complete(cuda.graph.GraphCompleteOptions(upload_stream=stream, use_node_priority=True))


def event_timer(stream: Any, launch: Callable[..., object]) -> Callable[..., float]:
    """Return a function that launches and returns the elapsed GPU seconds."""
    begin, end = _clock(stream), _clock(stream)

    def burst(*arguments: Any) -> float:
        stream.record(begin)
        launch(*arguments)
        stream.record(end)
        end.sync()
        return (end - begin) / 1000

    return burst


def _clock(stream: Any) -> Any:
    """Record and return an event that stores the time at which its stream reaches it."""
    return stream.record(options=cuda.EventOptions(timing_enabled=True))


def _fill(out: Any, recipe: Recipe) -> None:
    from fwtui.engine.generate_cuda import fill  # imports numba

    fill(out, recipe)


class CudaEngine(Engine):
    """The engine of one GPU. Steps with lane 0 run on `stream`; other lanes have their own streams, higher ones with priority."""

    timed = True

    def __init__(self, device: DeviceId = FIRST_GPU):
        self.device = device
        self._streams: dict[int, Any] = {}
        self.fill = _fill
        with self._device_errors():
            self.gpu = cuda.Device(device.index)
            self.activate()
            self.name, properties = self.gpu.name, self.gpu.properties
            self.stream = self._stream(0)
            self.target = Target(
                backend="cuda",
                cc=tuple(self.gpu.compute_capability),
                multiprocessors=properties.multiprocessor_count,
            )

    def facts(self, t: float) -> Device:
        """Return the GPU's facts from CUDA; peak bandwidth is memory clock x 2 (double data rate) x bus width."""
        from fwtui.stream.events import Device

        gpu = self.gpu.properties
        return Device(
            t=t,
            gpu=self.device.index,
            name=self.name,
            compute_capability=self.target.cc,
            multiprocessors=gpu.multiprocessor_count,
            memory_bytes=driver_calls.memory_sizes()[1],
            peak_bytes_per_second=2 * gpu.memory_clock_rate * 1000 * gpu.global_memory_bus_width / 8 or None,
            max_clock_mhz=gpu.clock_rate / 1000 or None,
            l2_bytes=gpu.l2_cache_size or None,
            cuda="{}.{}".format(*driver_calls.toolkit_version()),
        )

    @staticmethod
    @contextmanager
    def _device_errors() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise driver_calls.CudaError(str(error)) from error

    def activate(self) -> None:
        with self._device_errors():
            cuda.Device(self.device.index).set_current()  # cuda.core has one Device object per thread

    def free_bytes(self) -> int:
        self.synchronize()  # this also frees memory whose release is pending
        return driver_calls.memory_sizes()[0]

    def synchronize(self) -> None:
        for stream in (cuda.LEGACY_DEFAULT_STREAM, *self._streams.values()):
            stream.sync()

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, report: Report) -> None:
        launched, batch = 0, 1
        while launched < len(plan):
            steps = plan[launched : launched + batch]
            begin = time.perf_counter()
            for step in steps:
                check()
                program.launch(step, buffers, self.stream)
            self.stream.sync()
            launched += len(steps)
            report(launched)
            seconds = time.perf_counter() - begin
            batch = max(1, min(2 * batch, int(batch * REPORT_EVERY / max(seconds, 1e-6))))

    def timed_repetition(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> TimedRun:
        start = event_timer(self.stream, self._launching(partial(self._launch_on_streams, program, plan, buffers), mode))

        def run(check: Check) -> float:
            self.stream.sync()
            check()
            return start(check)

        return run

    def instrumented_repetition(self, program: Program, parts: Sequence[PhaseStretch], buffers: Buffers, mode: str) -> PhaseRun:
        clocks = [_clock(self.stream) for _ in range(len(parts) + 1)]

        def record(clock: Any) -> None:
            if mode == GRAPH:
                driver_calls.record_at_each_launch(clock, self.stream)
            else:
                self.stream.record(clock)

        def all_steps(check: Check) -> None:
            record(clocks[0])
            for part, clock in zip(parts, clocks[1:], strict=True):
                for step in part.steps:
                    check()
                    program.launch(step, buffers, self.stream)
                record(clock)

        # eager launches have gaps between them, which would count as phases at small sizes
        start = self._launching(all_steps, mode)

        def run(check: Check) -> StretchTimes:
            self.stream.sync()
            start(check)
            self.stream.sync()
            return StretchTimes([(late - early) / 1000 for early, late in pairwise(clocks)])

        return run

    def _launching(self, all_steps: Callable[[Check], None], mode: str) -> Callable[[Check], None]:
        """Return a function that starts all steps, eagerly or as a captured graph; a capture is not interrupted."""
        if mode != GRAPH:
            return all_steps
        graph = capture_graph(lambda: all_steps(lambda: None), self.stream)
        return lambda check: graph.launch(self.stream)

    def _stream(self, lane: int) -> Any:
        if lane not in self._streams:
            # lower is more urgent: blocks of such a stream get free multiprocessors first, also in a graph
            priority = max(-lane, driver_calls.most_urgent_priority())
            # the stream waits for the default stream, which creates arrays for which no stream was given
            self._streams[lane] = self.gpu.create_stream(options=cuda.StreamOptions(nonblocking=False, priority=priority))
        return self._streams[lane]

    def _launch_on_streams(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check) -> None:
        """Launch all steps on their streams, eagerly or inside a capture; events order the steps as `after` requires."""
        awaited = {earlier for step in plan for earlier in step.after}
        forked = {0}
        fork = self.stream.record() if any(step.lane for step in plan) else None
        done: dict[int, Any] = {}
        for index, step in enumerate(plan):
            check()
            stream = self._stream(step.lane)
            if fork is not None and step.lane not in forked:
                forked.add(step.lane)
                stream.wait(fork)
            for earlier in step.after:
                stream.wait(done[earlier])
            program.launch(step, buffers, stream)
            if index in awaited:
                done[index] = stream.record()
        for lane in forked - {0}:
            self.stream.wait(self._streams[lane].record())
