"""Microbenchmarks of this device's peak rates: relaxations per second in every form, and bytes per second of each memory level.

A peak rate is the best of many short bursts, because other work can only slow a burst down. Rates measured while other
programs used the CPU are still marked as noisy. Each loop's result is compared with NumPy's before it is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import psutil
from msgspec.structs import replace

from fwtui.analysis.disturbances import MAX_OTHER_SHARE
from fwtui.common.cores import usable_cores
from fwtui.engine.engine import Engine
from fwtui.machine import hardware
from fwtui.stream import events
from fwtui.stream.event import Cache
from fwtui_kernels.compiled.cpu_vectors import ROWS, width_of
from fwtui_kernels.forms import FORMS, RelaxForm
from fwtui_kernels.plan import ITEMSIZE
from fwtui_kernels.probes import probe_cpu, probe_cuda, probe_reads
from fwtui_kernels.probes.probe_forms import forms_of

SECONDS = 0.4  # duration of the bursts for each loop
LOOKS = 3  # minimum number of bursts
BURST = 2e-3  # seconds on a CPU: shorter than another process's typical time slice
TURNS = 2048  # iterations of the loop in one GPU launch: some milliseconds
COPY = 1 << 30  # maximum bytes: more than any cache
READS_CHECKED = 9  # iterations of a read probe before it is timed
L2_SHARE = 4  # 1 / this share of the L2 cache is read: each of its halves may hold a copy
COPY_SHARE = 8  # a copy's arrays take at most 1 / this of the free memory
BEYOND = 2  # times the size of the next smaller cache, so that the data cannot fit into that one
LARGEST = 1000  # operand range; the packed forms need sums below 2^15

Emit = Callable[[events.Limits], None]


class ProbeError(RuntimeError):
    """The probe's result differs from NumPy's, so its time is meaningless."""


def measure(
    engine: Engine,
    emit: Emit,
    now: Callable[[], float],
    rate_of: Callable[[str], float] | None = None,
    caches: Sequence[Cache] | None = None,
) -> None:
    """Report all peak rates measured so far after every form; the last report is `complete`. By default `rate_of` is cpu_rate(),
    and `caches` are this machine's."""
    rate_of = rate_of or cpu_rate
    backend = engine.target.backend
    limits = events.Limits(t=now(), backend=backend, gpu=engine.device.index, device=engine.name or hardware.machine().cpu)
    others = OtherWork()
    for form in forms_of(backend, engine.target.cc):
        if backend == "cuda":
            rate, clock = cuda_rate(engine, form)
            limit = events.FormLimit(form.key, relaxations_per_second=rate, clock_mhz=clock)
        else:  # no clock: the system averages it over more than a burst
            limit = events.FormLimit(form.key, relaxations_per_second=rate_of(form.dtype), noisy=others.disturb())
        limits = replace(limits, t=now(), forms=(*limits.forms, limit))
        emit(limits)
    if backend == "cuda":
        limits = replace(limits, copy_bytes_per_second=_cuda_copy(engine), levels=tuple(_cuda_levels(engine)))
    else:
        limits = replace(limits, copy_bytes_per_second=_cpu_copy(), copy_noisy=others.disturb())
        levels = _cpu_levels(hardware.machine().caches if caches is None else caches)
        limits = replace(limits, levels=tuple(replace(level, noisy=others.disturb()) for level in levels))
    emit(replace(limits, t=now(), complete=True))


class OtherWork:
    """Measures the share of this process's cores that other programs use."""

    def __init__(self, system: Any = psutil, clock: Callable[[], tuple[float, float]] | None = None) -> None:
        """`clock` returns the time and this process's CPU time."""
        self._system, self._clock = system, clock or (lambda: (time.monotonic(), time.process_time()))
        self._cores = sorted(usable_cores())
        self._before = self._read()

    def _read(self) -> tuple[float, float, float]:
        """Return the time, this process's CPU time, and the cores' idle time."""
        times = self._system.cpu_times(percpu=True)
        idle = sum(times[core].idle + getattr(times[core], "iowait", 0.0) for core in self._cores if core < len(times))
        return (*self._clock(), idle)

    def disturb(self) -> bool:
        """Return True if other programs used more than MAX_OTHER_SHARE since the last call."""
        before, self._before = self._before, self._read()
        passed, process_seconds, idle = (now - then for now, then in zip(self._before, before, strict=True))
        available = passed * len(self._cores)
        return available - idle - process_seconds > MAX_OTHER_SHARE * available


def cpu_rate(dtype: str, run: Callable[..., None] = probe_cpu.relax) -> float:
    import numba

    threads, depth, width = numba.get_num_threads(), probe_cpu.DEPTH, width_of(ITEMSIZE[dtype], probe_cpu.TILE)
    random = np.random.default_rng(1)
    to = random.integers(0, LARGEST, (threads * ROWS, depth)).astype(dtype)
    strips = random.integers(0, LARGEST, (threads * depth, width)).astype(dtype)
    before = random.integers(LARGEST, 2 * LARGEST, (threads * ROWS, width)).astype(dtype)
    cells = before.copy()
    run(cells, to, strips, 1, width)
    best = (to.reshape(threads, ROWS, depth, 1) + strips.reshape(threads, 1, depth, width)).min(2).reshape(before.shape)
    if not np.array_equal(cells, np.minimum(before, best)):
        raise ProbeError(f"the CPU's {dtype} probe is wrong")

    turns = _turns(lambda turns: run(cells[:ROWS], to[:ROWS], strips[:depth], turns, width))
    # the minimum over several of a thread's CPU time: any single one may have waited for a core
    worked = min(_bursts(lambda: _seconds(run, cells, to, strips, turns, width, clock=time.process_time)))
    return threads * threads * turns * ROWS * depth * width / worked


def _turns(run: Callable[[int], object], turns: int = 64) -> int:
    """Return the number of iterations whose computing time is one burst, excluding waits for a core or for other threads."""
    import numba

    threads = numba.get_num_threads()

    numba.set_num_threads(1)
    try:
        while any(_seconds(run, turns, clock=time.process_time) < BURST for _ in range(LOOKS)):
            turns *= 2
    finally:
        numba.set_num_threads(threads)
    return turns


def _cpu_copy() -> float:
    """Return the bytes read and written per second."""
    size = min(COPY // 4, psutil.virtual_memory().available // COPY_SHARE)
    source = np.ones(size // 8)
    to = np.zeros_like(source)
    probe_cpu.copy(source, to)
    if to[0] != 1 or to[-1] != 1:
        raise ProbeError("the CPU's copy is wrong")

    return 2 * source.nbytes / min(_bursts(lambda: _seconds(probe_cpu.copy, source, to)))


def _cpu_levels(caches: Sequence[Cache]) -> Iterator[events.LevelLimit]:
    """Yield the update rate of each CPU cache and of memory: cells are modified in place."""
    import numba

    threads = numba.get_num_threads()
    nearer = 0  # bytes of a core's share of the smaller caches
    for cache in (*caches, None):
        if cache is not None:
            level, size = cache.level, cache.bytes // cache.cores // 2
        else:
            free = psutil.virtual_memory().available // COPY_SHARE // threads
            level, size = 0, min(max(COPY // 4 // threads, 2 * BEYOND * nearer), free)
        if size >= BEYOND * nearer and size >= 8:
            cells = np.zeros((threads, size // 8), np.int64)
            every, one = (
                _update_rate(probe_cpu.update, cells[:count], cache is not None and cache.cores == 1) for count in (threads, 1)
            )
            yield events.LevelLimit(level, max(every, one), one)
        if cache is not None:
            nearer = max(nearer, cache.bytes // cache.cores)


def _update_rate(update: Callable[..., None], cells: np.ndarray, in_own_cache: bool) -> float:
    """Return the bytes read and written per second, with one row of cells per thread; `in_own_cache`: each in its core's cache.

    Threads that share nothing are timed by their CPU time, because other programs may delay them.
    """
    ends = cells[:, [0, -1]] + 1
    update(cells, 1, 1)
    if not np.array_equal(cells[:, [0, -1]], ends):
        raise ProbeError("the CPU's update in place is wrong")
    turns = _turns(lambda turns: update(cells[:1], turns, 1), 1)
    if in_own_cache or len(cells) == 1:
        worked = min(_bursts(lambda: _seconds(update, cells, turns, 1, clock=time.process_time))) / len(cells)
    else:
        worked = min(_bursts(lambda: _seconds(update, cells, turns, 1)))
    return 2 * cells.nbytes * turns / worked


def _seconds(work: Callable[..., object], *arguments: Any, clock: Callable[[], float] | None = None) -> float:
    clock = clock or time.perf_counter
    begin = clock()
    work(*arguments)
    return clock() - begin


def cuda_rate(engine: Any, form: RelaxForm) -> tuple[float, float]:
    """Return relaxations per second, and the SM clock in MHz during the probe: counted cycles / time."""
    from fwtui.engine.cuda_engine import event_timer
    from fwtui_kernels.compiled.device import cuda, host_copy

    number = FORMS.index(form)
    stream, blocks = engine.stream, engine.target.multiprocessors * probe_cuda.resident(number)
    probe = probe_cuda.build(number)
    random = np.random.default_rng(1)
    source = probe_cuda.packed(number, random.integers(0, LARGEST, 2 * probe_cuda.SLAB))
    cells = probe_cuda.packed(number, random.integers(LARGEST, 2 * LARGEST, (probe_cuda.BLOCK, probe_cuda.CELLS)))
    cells_on_gpu = cuda.to_device(np.tile(cells.ravel(), blocks), stream=stream)
    slabs = cuda.to_device(source, stream=stream)
    clocks = cuda.device_array(blocks, np.int64, stream=stream)
    launch = probe[blocks, probe_cuda.BLOCK, stream]
    burst = event_timer(stream, lambda: launch(cells_on_gpu, slabs, np.int32(0), np.int32(TURNS), clocks))

    burst()
    got = host_copy(cells_on_gpu, stream)
    if not np.array_equal(
        got.reshape(blocks, *cells.shape), np.broadcast_to(probe_cuda.expected(number, cells, source), (blocks, *cells.shape))
    ):
        raise ProbeError(f"the GPU's {form.key} probe is wrong")
    # the longest: a multiprocessor may favour one block, which then ends long before the launch
    seconds, cycles = min(_bursts(lambda: (burst(), float(host_copy(clocks, stream).max()))))
    relaxations = blocks * probe_cuda.BLOCK * probe_cuda.CELLS * probe_cuda.DEPTH * TURNS * form.lanes
    return relaxations / seconds, cycles / seconds / 1e6


def _cuda_copy(engine: Any) -> float:
    """Return the bytes read and written per second by a copy within device memory."""
    from fwtui.engine.cuda_engine import event_timer
    from fwtui_kernels.compiled.device import cuda

    stream = engine.stream
    size = min(COPY, engine.free_bytes() // COPY_SHARE)
    source, to = (cuda.device_array(size, np.uint8, stream=stream) for _ in range(2))
    burst = event_timer(stream, lambda: cuda.copy_on_device(to, source, size, stream))
    burst()
    return 2 * size / min(_bursts(burst))


def _cuda_levels(engine: Any) -> Iterator[events.LevelLimit]:
    """Yield the read rates of all multiprocessors from shared memory (level 1) and from the L2 cache."""
    pieces = ((engine.facts(0.0).l2_bytes or 0) // L2_SHARE) // (probe_reads.THREADS * probe_reads.WORDS * 4)
    yield events.LevelLimit(1, cuda_reads(engine, probe_reads.NEAR, shared=True))
    if pieces > 1:
        yield events.LevelLimit(2, cuda_reads(engine, 1 << (pieces.bit_length() - 1), shared=False))


def cuda_reads(engine: Any, pieces: int, shared: bool, threads: int = probe_reads.THREADS) -> float:
    """Return the bytes read per second."""
    from fwtui.engine.cuda_engine import event_timer
    from fwtui_kernels.compiled.device import cuda, host_copy

    stream, blocks = engine.stream, engine.target.multiprocessors
    values = np.random.default_rng(1).integers(0, 1 << 30, pieces * threads * probe_reads.WORDS).astype(np.int32)
    source, sums = cuda.to_device(values, stream=stream), cuda.device_array(blocks * threads, np.int32, stream=stream)
    launch = probe_reads.build(shared, threads)[blocks, threads, stream]
    launch(source, np.int32(pieces), np.int32(READS_CHECKED), sums)
    if not np.array_equal(host_copy(sums, stream), probe_reads.expected(values, pieces, READS_CHECKED, blocks)):
        raise ProbeError(f"the GPU's probe of {'shared memory' if shared else 'the L2 cache'} is wrong")
    seconds = min(_bursts(event_timer(stream, lambda: launch(source, np.int32(pieces), np.int32(TURNS), sums))))
    return blocks * threads * probe_reads.WORDS * values.itemsize * TURNS / seconds


def _bursts(burst: Callable[[], Any]) -> Iterator[Any]:
    """Repeat the burst for SECONDS, at least three times."""
    begin = time.perf_counter()
    for count in range(10_000):
        if count >= 3 and time.perf_counter() - begin > SECONDS:
            return
        yield burst()
