"""The matrix into a program and its result out of it, told as stages: how long the copies take, and what lies beside them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from fwtui.engine.engine import Engine
from fwtui.measure.events_out import Teller
from fwtui.stream import events
from kernels.plan import Buffers, Copied, Program, Shape

MOST, SECONDS = 5, 0.1  # times that a copy is made for its median, as long as they take no longer


def load(teller: Teller, engine: Engine, program: Program, shape: Shape, matrix: Any, buffers: Buffers) -> None:
    """The graph into the program, from where restore() takes it."""
    size = shape.padded**2 * shape.itemsize
    if not isinstance(program, Copied) or not program.repeatable:
        with teller.stage("load", size):
            program.load(matrix, buffers, engine.stream)
            engine.synchronize()
        return
    _repeated(teller, "load", size, lambda: program.copy_in(matrix, buffers, engine.stream))
    if program.reorders:
        with teller.stage("reorder"):
            program.pack(buffers, engine.stream)
            engine.synchronize()


def unload(teller: Teller, engine: Engine, program: Program, shape: Shape, buffers: Buffers) -> Any:
    """The n x n result as a host array."""
    size = shape.n**2 * shape.itemsize
    if not isinstance(program, Copied) or not program.repeatable:
        with teller.stage("unload", size):
            return program.unload(buffers, engine.stream)
    if program.reorders:
        with teller.stage("reorder back"):
            program.unpack(buffers, engine.stream)
            engine.synchronize()
    return _repeated(teller, "unload", size, lambda: program.copy_out(buffers, engine.stream))


def _repeated(teller: Teller, name: str, size: int, copy: Callable[[], Any]) -> Any:
    """The median of several copies: the first one pays for what a driver does once."""
    teller.tell(events.Stage, name=name)
    seconds: list[float] = []
    copied = None
    while not seconds or (len(seconds) < MOST and sum(seconds) < SECONDS):
        copied = None  # so that two results are never held at once
        begin = perf_counter()
        copied = copy()
        seconds.append(perf_counter() - begin)
    teller.tell(events.Stage, name=name, seconds=median(seconds), bytes=size)
    return copied
