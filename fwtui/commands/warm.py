"""Compile ahead what `fwtui solve`, `fwtui.solve()` and the dashboard's first run need, for a quick first use."""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import NamedTuple

from fwtui.commands.support.narrating import say
from fwtui.common import units
from fwtui.common.child_process import ChildProcess, python
from fwtui.common.cores import usable_cores
from fwtui.common.environment import CACHE_ROOM, cache_folder, forget_old_editions, lasting, worker_environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.experiment.experiment import first_steps
from fwtui.machine import hardware
from fwtui.solver.warm import MOST
from fwtui_kernels.plan import DTYPES

_CODE = "fwtui.solver.compile_code"
SIZES = ((3200, 4200), (300, 1100))  # vertices on either side of where GPU kernels change their tile, or what they make of it
_MOST_AT_ONCE = 8  # each has a context of the GPU
_MOST_SECONDS = 600.0  # for one part


class CompileJob(NamedTuple):
    """What one process compiles."""

    name: str
    command: Sequence[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto", help="cpu: leave out what a GPU needs")


def execute(args: argparse.Namespace) -> int:
    if not lasting():
        room = units.memory(CACHE_ROOM)
        raise Refused(
            f"nothing can be kept: the cache folder cannot be written, or has less than {room} free; correct that, "
            "or set XDG_CACHE_HOME to another folder"
        )
    gpu = uses_gpu(args.device)
    return compile_all(parts(gpu), f"the CPU{' and the GPU' if gpu else ''}")


def compile_all(waiting: Sequence[CompileJob], device: str) -> int:
    """Compile the parts and say what is ready; the exit code."""
    say(f"compiling {units.counted(len(waiting), 'part')} for {device}; what is compiled already is only loaded")
    failed = 0
    begun = time.monotonic()
    for name, seconds, reason in compiled(waiting, worker_environment("real")):
        print(f"{name:<36}  {units.duration(seconds)}{f'  not compiled: {reason}' if reason else ''}", flush=True)
        failed += bool(reason)
    took = units.duration(time.monotonic() - begun)
    freed = forget_old_editions()
    say(f"{len(waiting) - failed} of {len(waiting)} ready after {took}, kept in {cache_folder()}")
    if freed:
        say(f"{units.memory(freed)} that other versions had compiled over a month ago were removed")
    return WRONG if failed else OK


def uses_gpu(device: str) -> bool:
    """Whether a GPU's parts are compiled too."""
    return device == "auto" and hardware.gpu_present() and hardware.cuda_package() is not None


def parts(gpu: bool) -> list[CompileJob]:
    """The slowest first."""
    found = []
    if gpu:
        solving = [(dtype, sizes) for sizes in SIZES for dtype in DTYPES]
        found += [
            CompileJob(f"solve on the GPU, {dtype}, n = {sizes[0]}", python(_CODE, "0", dtype, *map(str, sizes)))
            for dtype, sizes in solving
        ]
    found += [CompileJob(f"solve on the CPU, {dtype}", python(_CODE, "cpu", dtype, "130")) for dtype in DTYPES]
    found.append(CompileJob(f"solve up to n = {MOST}, on one core", python(_CODE)))
    first, second = first_steps(gpu)
    both = f"{first.kernel},{second.kernel}"
    run = python("fwtui", "run", "-k", both, "-n", str(first.n), "--repeats", "1", "--telemetry-hz", "0", "--json")
    return [*found, CompileJob(f"the dashboard's first runs, {first.kernel} and {second.kernel}", run)]


def compiled(
    waiting: Sequence[CompileJob], environment: Mapping[str, str], at_once: int = 0, most: float = _MOST_SECONDS
) -> Iterator[tuple[str, float, str]]:
    """Each part when it has ended: its name, its seconds, and why it failed; `at_once` (0: by cores), each for `most` seconds."""
    stop = Event()

    def run(part: CompileJob) -> tuple[str, float, str]:
        begun = time.monotonic()
        ended = ChildProcess(part.command, environment, stdout=subprocess.DEVNULL).finish(most, stop=stop)
        reason = "" if ended.code == 0 else "it took too long" if ended.code is None else ended.last_words
        return part.name, time.monotonic() - begun, reason

    with ThreadPoolExecutor(at_once or min(len(usable_cores()), _MOST_AT_ONCE)) as pool:
        try:
            for part in as_completed([pool.submit(run, part) for part in waiting]):
                yield part.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
