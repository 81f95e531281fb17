"""The matrix into a program and its result out of it, told as stages: how long the copies take, and what lies beside them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from fwtui.measure.job import Job
from fwtui.stream import events
from kernels.plan import Buffers, Copied, Program

MOST, SECONDS = 5, 0.1  # times that a copy is made for its median, as long as they take no longer


def load(job: Job, program: Program, matrix: Any, buffers: Buffers) -> None:
    """The graph into the program, from where restore() takes it."""
    stream, size = job.engine.stream, program.shape.padded**2 * program.shape.itemsize
    if not isinstance(program, Copied) or not program.repeatable:
        with job.stage("load", size):
            program.load(matrix, buffers, stream)
        return
    _repeated(job, "load", size, lambda: program.copy_in(matrix, buffers, stream))
    if program.reorders:
        with job.stage("reorder"):
            program.pack(buffers, stream)


def unload(job: Job, program: Program, buffers: Buffers) -> Any:
    """The n x n result as a host array."""
    stream, size = job.engine.stream, program.shape.n**2 * program.shape.itemsize
    if not isinstance(program, Copied) or not program.repeatable:
        with job.stage("unload", size):
            return program.unload(buffers, stream)
    if program.reorders:
        with job.stage("reorder back"):
            program.unpack(buffers, stream)
    return _repeated(job, "unload", size, lambda: program.copy_out(buffers, stream))


def _repeated(job: Job, name: str, size: int, copy: Callable[[], Any]) -> Any:
    """The median of several copies: the first one pays for what a driver does once."""
    job.tell(events.Stage, name=name)
    seconds: list[float] = []
    copied = None
    while not seconds or (len(seconds) < MOST and sum(seconds) < SECONDS):
        copied = None  # so that two results are never held at once
        begin = perf_counter()
        copied = copy()
        seconds.append(perf_counter() - begin)
    job.tell(events.Stage, name=name, seconds=median(seconds), bytes=size)
    return copied
