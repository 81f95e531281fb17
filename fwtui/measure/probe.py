"""Measures this device's limits: relaxations per second in every form, and bytes per second of a copy.

A limit is the best of many short bursts: other work can only slow a burst down. Each loop's result
is compared with NumPy's before its time counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
from msgspec.structs import replace

from fwtui.engine.engine import Engine
from fwtui.machine import hardware
from fwtui.stream import events
from fwtui_kernels.forms import FORMS, RelaxForm
from fwtui_kernels.probes import probe_cpu, probe_cuda
from fwtui_kernels.probes.probe_forms import forms_of

SECONDS = 0.5  # of bursts for each form, and for copying
LOOKS = 3  # least number of bursts
BURST = 2e-3  # seconds on a CPU: shorter than another process's usual time slice
TURNS = 2048  # of the loop in one launch on a GPU: some milliseconds
COPY = 1 << 30  # bytes at most: more than any cache
COPY_SHARE = 8  # a copy's arrays take at most 1 / this of the free memory
LARGEST = 1000  # operand range; the packed forms need sums below 2^15

Emit = Callable[[events.Limits], None]


class NotRight(RuntimeError):
    """A probe's result differs from NumPy's: its time is meaningless."""


def measure(engine: Engine, emit: Emit, now: Callable[[], float]) -> None:
    """Reports all limits known so far after every form; `complete` with the last."""
    backend = engine.target.backend
    told = events.Limits(t=now(), backend=backend, gpu=engine.device.index, device=engine.name or hardware.machine().cpu)
    for form in forms_of(backend, engine.target.cc):
        rate, clock = _cuda_rate(engine, form) if backend == "cuda" else _best_cpu_rate(form)
        found = events.FormLimit(form.key, relaxations_per_second=rate, clock_mhz=clock)
        told = replace(told, t=now(), forms=(*told.forms, found))
        emit(told)
    copied = _cuda_copy(engine) if backend == "cuda" else _cpu_copy()
    emit(replace(told, t=now(), copy_bytes_per_second=copied, complete=True))


def _best_cpu_rate(form: RelaxForm) -> tuple[float, None]:
    """The best of all tiles; no clock, because the system averages it over more than a burst."""
    return max(_cpu_rate(probe_cpu.build(form, tile)) for tile in probe_cpu.tiles()), None


def _cpu_rate(probe: probe_cpu.ProbeLoop) -> float:
    import numba

    threads, rows = numba.get_num_threads(), probe.tile.rows
    random = np.random.default_rng(1)
    a = random.integers(0, LARGEST, (threads, probe_cpu.DEPTH * rows)).astype(probe.dtype)
    b = random.integers(0, LARGEST, (threads, probe_cpu.DEPTH * probe.width)).astype(probe.dtype)
    before = random.integers(LARGEST, 2 * LARGEST, (threads, rows * probe.width)).astype(probe.dtype)
    c = before.copy()
    probe.run(c, a, b, 1, 0)
    by_k = (threads, probe_cpu.DEPTH)
    best = (a.reshape(*by_k, rows, 1) + b.reshape(*by_k, 1, probe.width)).min(1).reshape(before.shape)
    if not np.array_equal(c, np.minimum(before, best)):
        raise NotRight(f"the CPU's {probe.dtype} probe with a tile of {rows} x {probe.tile.columns} vectors is wrong")

    turns = _turns(lambda turns: probe.run(c[:1], a[:1], b[:1], turns, 0))
    # the shortest of several: any one may have waited for a core
    return threads * turns * probe.relaxations / min(_bursts(lambda: _seconds(probe.run, c, a, b, turns, 0)))


def _turns(run: Callable[[int], object]) -> int:
    """How many keep a core at work for a burst. Waits for a core do not count, nor does one thread's wait for another."""
    import numba

    turns, threads = 64, numba.get_num_threads()

    def worked() -> float:
        begin = time.process_time()
        run(turns)
        return time.process_time() - begin

    numba.set_num_threads(1)
    try:
        while any(worked() < BURST for _ in range(LOOKS)):
            turns *= 2
    finally:
        numba.set_num_threads(threads)
    return turns


def _cpu_copy() -> float:
    """Bytes read and written per second."""
    size = min(COPY // 4, psutil.virtual_memory().available // COPY_SHARE)
    source = np.ones(size // 8)
    to = np.zeros_like(source)
    copy = probe_cpu.build_copy()
    copy(source, to)
    if to[0] != 1 or to[-1] != 1:
        raise NotRight("the CPU's copy is wrong")

    return 2 * source.nbytes / min(_bursts(lambda: _seconds(copy, source, to)))


def _seconds(work: Callable[..., object], *arguments: Any) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def _cuda_rate(engine: Any, form: RelaxForm) -> tuple[float, float]:
    """Relaxations per second, and the multiprocessors' clock meanwhile in MHz: cycles that they counted / time."""
    from fwtui_kernels.compiled.device import cuda, host_copy

    number = FORMS.index(form)
    stream, blocks = engine.stream, engine.target.multiprocessors * probe_cuda.BLOCKS_PER_MULTIPROCESSOR
    probe = probe_cuda.build(number)
    random = np.random.default_rng(1)
    source = probe_cuda.words(number, random.integers(0, LARGEST, 2 * probe_cuda.SLAB))
    cells = probe_cuda.words(number, random.integers(LARGEST, 2 * LARGEST, (probe_cuda.BLOCK, probe_cuda.CELLS)))
    held = cuda.to_device(np.tile(cells.ravel(), blocks), stream=stream)
    slabs = cuda.to_device(source, stream=stream)
    clocks = cuda.device_array(blocks, np.int64, stream=stream)
    launch = probe[blocks, probe_cuda.BLOCK, stream]
    burst = _timed(stream, lambda: launch(held, slabs, np.int32(0), np.int32(TURNS), clocks))

    burst()
    got = host_copy(held, stream)
    if not np.array_equal(
        got.reshape(blocks, *cells.shape),
        np.broadcast_to(probe_cuda.expected(number, cells, source), (blocks, *cells.shape)),
    ):
        raise NotRight(f"the GPU's {form.key} probe is wrong")
    # the longest: a multiprocessor may favour one block, which then ends long before the launch
    seconds, cycles = min(_bursts(lambda: (burst(), float(host_copy(clocks, stream).max()))))
    relaxations = blocks * probe_cuda.BLOCK * probe_cuda.CELLS * probe_cuda.DEPTH * TURNS * form.lanes
    return relaxations / seconds, cycles / seconds / 1e6


def _cuda_copy(engine: Any) -> float:
    """Bytes read and written per second, from device memory to device memory."""
    from fwtui_kernels.compiled.device import cuda

    stream = engine.stream
    size = min(COPY, engine.free_bytes() // COPY_SHARE)
    source, to = (cuda.device_array(size, np.uint8, stream=stream) for _ in range(2))
    burst = _timed(stream, lambda: cuda.copy_on_device(to, source, size, stream))
    burst()
    return 2 * size / min(_bursts(burst))


def _timed(stream: Any, launch: Callable[[], object]) -> Callable[[], float]:
    """Launches, and returns the seconds on the GPU."""
    from fwtui.engine.cuda_engine import Timer

    begin, end = Timer(), Timer()

    def burst() -> float:
        begin.record(stream)
        launch()
        end.record(stream)
        end.wait()
        return begin.seconds_until(end)

    return burst


def _bursts(burst: Callable[[], Any]) -> Iterator[Any]:
    """Repeat for a while, at least three times."""
    begin = time.perf_counter()
    for count in range(10_000):
        if count >= 3 and time.perf_counter() - begin > SECONDS:
            return
        yield burst()
