"""The process that samples the warps of a kernel. Sampling slows a process down permanently, so this one never times a run.

For a run on several GPUs it launches the steps of rank 0 on the GPU of rank 0.

`python -P -m fwtui.measure.warp_sampling_process ORIGIN` imports everything and waits without opening the GPU; ORIGIN is the
session's start in monotonic seconds. For a SampleRequest on stdin it writes WarpSamples, CodeText and CodeSamples of every kernel
function, then Sampled. A request with `ahead` only opens the GPU.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from math import inf, log2
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, NamedTuple

from cuda import core
from msgspec.structs import replace

from fwtui.analysis.warps import warp_reason
from fwtui.common.child_protocol import Parent, serve
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.common.units import duration
from fwtui.engine.distributed_engine import steps_of_rank
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.kernel_instance import LoadedKernel, load_kernel
from fwtui.measure.code_listing import build_listing, code_name
from fwtui.measure.pc_sampling import PcSampler, PcSamples, SamplingError, only_sampler
from fwtui.measure.repetitions import representatives
from fwtui.measure.user_kernel_process import resolve_kernel
from fwtui.stream import codec, events
from fwtui.stream.listing import listing_of, shares_of, text_of
from fwtui.stream.requests import SampleRequest
from fwtui_kernels.compiled import disassembly, gpu
from fwtui_kernels.compiled.cubin_cache import CompiledCode
from fwtui_kernels.plan import EVERY, Kernel, Link, Shape, Step
from fwtui_kernels.programs.cuda_program import cached_cubins, functions_of

cuda: Any = core  # a package of compiled modules
ENOUGH_SECONDS = 0.003  # total of the launches of one op, if repetition can reach it
MAX_LAUNCHES = 256
LAUNCHES = 3  # minimum launches of a step: one that loads it, one that is timed, one that is sampled
MOMENTS = 4096  # samples of each multiprocessor during the launches, approximately
PERIODS = 5, 24  # CUPTI takes powers of two cycles from 5 to 31
REPORT_SECONDS = 0.2  # time from the end of the last sampling session to the last event
COARSER = 2  # powers of two by which a period may be coarser than optimal: a quarter of the samples
CYCLES = 1.5e9  # per second, approximately
SHORT = 0.05  # seconds of a launch up to which it is timed three times
SLOW = 0.3  # seconds of a repetition from which only the sampled launches run
RANK = 0  # the rank whose steps are sampled


class AbsentRanks(Link):
    """A link without other ranks: a broadcast returns at once and leaves the panel unchanged."""

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        if owner != RANK:
            _zero(array)
        return int


@cache
def disassembler() -> disassembly.Disassembler:
    """Return this process's disassembler. Raises FileNotFoundError."""
    return disassembly.Disassembler()


class SampledContext:
    """The GPU in use, and the sampler of kernels that are loaded later."""

    def __init__(self, engine: Engine, sampler: PcSampler):
        self.engine, self.sampler = engine, sampler
        self._disassembler = disassembler()
        self.quiet = self._disassembler.reading  # held while launches are timed

    def disassemble(self) -> None:
        """Start to disassemble all loaded functions in the background."""
        for one in gpu.functions:
            self._disassembler.begin(one.code.cubin)

    def main_function(self, samples: PcSamples) -> tuple[CompiledCode, dict[int, dict[str, int]]]:
        """Return the function with the most samples, and its samples by instruction offset."""
        by_function: dict[tuple[int, str], dict[int, dict[str, int]]] = defaultdict(dict)
        for place, reasons in samples.by_place.items():
            by_function[place.crc, place.function][place.offset] = dict(reasons)
        name = max(by_function, key=lambda one: sum(sum(reasons.values()) for reasons in by_function[one].values()))
        here = {(self.sampler.crc(one.code.cubin), one.code.entry): one.code for one in gpu.functions}
        return here.get(name, CompiledCode(name[1], b"")), by_function[name]

    def instructions(self, code: CompiledCode) -> tuple[disassembly.MachineInstruction, ...]:
        """Return the instructions; none for a function of another program or one that the disassembler cannot read."""
        with suppress(OSError, RuntimeError, SubprocessError):
            return self._disassembler.functions(code.cubin).get(code.entry, ()) if code.cubin else ()
        return ()


class KernelPlan(NamedTuple):
    """The kernel and steps that a request samples: with several ranks, the steps of the first."""

    kernel: Kernel
    shape: Shape
    steps: list[Step]


def plan_request(request: SampleRequest, engine: Engine) -> KernelPlan:
    """Return the kernel and its steps. Raises Refused."""
    experiment = request.experiment
    kernel = resolve_kernel(experiment, request.own)
    shape = experiment.shape(request.vertices or experiment.n)
    plan = list(kernel.plan(shape, False))
    if shape.ranks > 1:
        engine.target = dataclasses.replace(engine.target, rank=RANK, link=AbsentRanks())
        plan = steps_of_rank(plan, RANK)
    return KernelPlan(kernel, shape, plan)


def prepare_disassembly(request: SampleRequest, engine: Engine) -> None:
    """Disassemble code in the disk cache, which takes half a second, while repetitions may be timed: nothing is launched."""
    kernel, shape, plan = plan_request(request, engine)
    for cubin in cached_cubins(engine.build(kernel, shape), plan, engine.target.cc or (0, 0)):
        disassembler().begin(cubin)


def sample(request: SampleRequest, context: SampledContext, emit: Callable[[events.Event], None], until: float = inf) -> str:
    """Report the samples of each op, the longest first, until that monotonic time; return a sentence on ops without samples.

    Raises Refused and SamplingError.
    """
    kernel, shape, plan = plan_request(request, context.engine)
    with load_kernel(kernel, shape, context.engine, plan=plan) as it:
        steps = [i for i in representatives(plan) if plan[i].rank != EVERY]  # no kernel of this program broadcasts
        work: Counter[str] = Counter()
        for step in plan:
            work[step.op] += step.cost.relaxations
        single = request.seconds * max(plan[i].cost.relaxations for i in steps) / (work.total() or 1)
        if until < inf and single * LAUNCHES > request.most_seconds:
            raise Refused(f"one launch takes {duration(single)}, so it is sampled only with --samples on")
        context.engine.compile(it.program, plan, it.buffers)
        context.disassemble()
        it.program.fill(_zero, it.buffers, context.engine.stream)
        with context.quiet:
            timed = _timed_launches(it, steps, request.seconds < SLOW, context)
            samples_by_op = _samples_until(
                until, it, sorted(group_launches(timed), key=lambda together: -max(work[one.op] for one in together)), context
            )
        for op, (samples, period) in samples_by_op.items():  # all ops first: the code is disassembled in the background
            if samples.by_place:
                for event in _events(request, op, samples, period, context):
                    emit(event)
    late = [one.op for one in timed if one.op not in samples_by_op]
    if late:
        return f"{', '.join(late)} not sampled, as that takes longer than {duration(request.most_seconds)}; pass --samples on"
    lacking = [op for op, (samples, _) in samples_by_op.items() if not samples.by_place]
    if lacking:
        return f"no samples of {', '.join(lacking)}: the launches are too short, or another program samples this GPU"
    return ""


class SampledLaunches(NamedTuple):
    """The sampled launches of a step."""

    step: Step
    times: int
    period: int  # cycles between two samples, as a power of two
    functions: frozenset[tuple[int, str]]  # cubin CRC and name of each; empty if they are unknown

    @property
    def op(self) -> str:
        return self.step.op


def _timed_launches(it: LoadedKernel, steps: Sequence[int], every: bool, context: SampledContext) -> list[SampledLaunches]:
    """Time the launches of the chosen steps; with `every`, also run the steps between them."""
    timed: list[SampledLaunches] = []
    for index, step in enumerate(it.plan[: max(steps) + 1]):
        if index in steps:
            timed.append(_timed(it, step, context))
        elif every:
            it.launch(step)
    return timed


def _samples_until(
    until: float, it: LoadedKernel, ordered: Sequence[Sequence[SampledLaunches]], context: SampledContext
) -> dict[str, tuple[PcSamples, int]]:
    """Return the samples of each op from as many sampling sessions as end by that time, at least one."""
    samples_by_op: dict[str, tuple[PcSamples, int]] = {}
    last = 0.0  # seconds of a session
    for together in ordered:
        start = time.monotonic()
        if not samples_by_op or start + last <= until:
            samples_by_op |= _sampled(it, together, context)
            last = time.monotonic() - start
    return samples_by_op


def _timed(it: LoadedKernel, step: Step, context: SampledContext) -> SampledLaunches:
    """Time one launch of a step, and return how many launches are enough to sample it."""

    def launch() -> float:
        begin = time.perf_counter()
        it.launch(step)
        context.engine.synchronize()
        return time.perf_counter() - begin

    launch()  # loads it
    each = launch()
    if each < SHORT:  # a single launch may have been delayed
        each = max(2e-6, min(each, launch(), launch()))
    times = max(1, min(MAX_LAUNCHES, round(ENOUGH_SECONDS / each)))
    period = round(log2(max(1.0, each * times * CYCLES / MOMENTS)))
    codes = [function.code for function in functions_of(it.program, step.op)]
    functions = frozenset((context.sampler.crc(code.cubin), code.entry) for code in codes)
    return SampledLaunches(step, times, max(PERIODS[0], min(PERIODS[1], period)), functions)


def group_launches(launches: Sequence[SampledLaunches]) -> list[list[SampledLaunches]]:
    """Group launches sampled in one session, which takes 0.15 s to start: distinct functions of similar duration."""
    groups: list[list[SampledLaunches]] = []
    for one in sorted(launches, key=lambda one: one.period):
        alike = (
            together
            for together in groups
            if one.period <= together[0].period + COARSER
            and all(one.functions and other.functions and one.functions.isdisjoint(other.functions) for other in together)
        )
        if (together := next(alike, None)) is not None:
            together.append(one)
        else:
            groups.append([one])
    return groups


def _sampled(it: LoadedKernel, together: Sequence[SampledLaunches], context: SampledContext) -> dict[str, tuple[PcSamples, int]]:
    """Return the samples of each op, and the base-2 logarithm of the cycles between two samples."""

    def launch() -> None:
        for one in together:
            for _ in range(one.times):
                it.launch(one.step)
        context.engine.synchronize()

    period = max(one.period for one in together)
    samples = context.sampler.samples(period, launch)
    while samples.full and period < PERIODS[1]:
        period = min(PERIODS[1], period + COARSER)
        samples = context.sampler.samples(period, launch)
    return {one.op: (samples.of(one.functions) if len(together) > 1 else samples, period) for one in together}


def _events(request: SampleRequest, op: str, sampled: PcSamples, period: int, context: SampledContext) -> list[events.Event]:
    function, at = context.main_function(sampled)
    instructions = context.instructions(function)
    listed = build_listing(instructions, at, Path(request.own) if request.own else None, request.include_source)
    every: Counter[str] = Counter()
    for reasons in sampled.by_place.values():
        every.update(reasons)
    samples = events.WarpSamples(
        t=0.0,
        run=request.run,
        op=op,
        rank=RANK if len(request.experiment.places) > 1 else None,
        reasons=dict(every),
        cycles=1 << period,
        dropped=sampled.dropped,
        unmapped=every.total() - sum(one.samples for one in listed.lines if one.line),
        mix=listed.mix,
        relaxations=listed.relaxations,
    )
    code = code_name(instructions, listed.lines)
    text, shares = text_of(listed, code), shares_of(listed, code, request.run, op, samples.samples)
    hot = warp_reason(samples, listing_of(shares, text, samples.samples)).line  # every screen determines the line in the same way
    return [replace(samples, hot=hot), text, shares]


def _zero(matrix: Any) -> None:
    """Fill with edges of length 0: like most relaxations of a real graph, they change nothing."""
    if hasattr(matrix, "buffer"):
        matrix.buffer.fill(0, stream=cuda.LEGACY_DEFAULT_STREAM)
    else:
        matrix.fill(0)


def answer(request: SampleRequest, parent: Parent) -> None:
    """Sample the run of a request; if the request is `ahead`, only open the GPU."""
    begin = time.monotonic()

    def emit(event: events.Event) -> None:
        parent.write(codec.encode(replace(event, t=max(0.0, time.monotonic() - float(sys.argv[1])))))

    device = request.experiment.runs_on
    if request.ahead:
        engine = engine_for(device)
        with suppress(Exception):  # the request that follows fails again, and reports it
            prepare_disassembly(request, engine)
        return
    try:
        engine = engine_for(device)
        here = cuda.Device(device.index)
        with only_sampler(here.uuid):
            sampler = PcSampler(int(here.context.handle))
            until = begin + request.most_seconds - REPORT_SECONDS if request.most_seconds else inf
            note = sample(request, SampledContext(engine, sampler), emit, until)
    except (Refused, FileNotFoundError, SamplingError) as error:
        note = sanitise(str(error))
    emit(events.Sampled(t=0.0, run=request.run, note=note, seconds=time.monotonic() - begin))


if __name__ == "__main__":
    serve(SampleRequest, answer)
