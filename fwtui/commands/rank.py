"""Run as one of several processes on GPUs or CPUs of one or more machines, all started by mpiexec or srun.

Every rank has the same options, which are those of `fwtui run`. Rank 0 prints what `fwtui run` prints.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from fwtui.commands import run
from fwtui.common.environment import worker_environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import SIGNALLED
from fwtui.common.signals import on_signals
from fwtui.common.streams import report
from fwtui.common.text import quoted
from fwtui.experiment.device import ALL, RankDevice, places_text
from fwtui.experiment.experiment import kernel_named
from fwtui.live.rank_job import GIVEN
from fwtui.machine import hardware, settings
from fwtui_kernels.auto import AUTO

CPU = "cpu"
SCRIPT = """a script for Slurm, with four GPUs on each of two machines:

    #!/bin/bash
    #SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --time=0:30:00
    srun --mpi=pmi2 fwtui rank -n 65536 --dtype int16 --record

without Slurm: mpiexec --hostfile hosts -n 8 fwtui rank -n 65536
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run.add_arguments(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = SCRIPT


def execute(args: argparse.Namespace) -> int:
    if find_spec("mpi4py") is None:
        install = hardware.install_command("fwtui[cluster]")
        raise Refused(f"several machines need MPI, and mpi4py is not installed; run: {install}")
    for name, value in worker_environment("real").items():
        os.environ.setdefault(name, value)
    from mpi4py import MPI

    from fwtui.engine.links import unlink_shared_memory

    world = MPI.COMM_WORLD
    unlink_shared_memory(world)
    if world.size == 1:
        raise Refused(
            "this is one process alone; start several with mpiexec or srun, such as mpiexec -n 4 fwtui rank. If you did, that "
            f"mpiexec belongs to another MPI than mpi4py ({MPI.get_vendor()[0]}). On one machine use `fwtui run --devices`"
        )
    try:
        ranks = _places(world, args)
        timeout = float(settings.load().text("rank_timeout"))
    except Refused:
        if world.rank:
            return 0  # rank 0 says why
        raise
    if world.rank == 0:
        return _lead(world, ranks, timeout)
    on_signals(signal.SIG_IGN)  # rank 0 ends the job
    _serve(world, ranks, timeout)
    return 0


def _places(world: Any, args: argparse.Namespace) -> tuple[RankDevice, ...]:
    """Where each rank computes. Raises Refused, on all ranks alike."""
    from fwtui.measure.rank import assigned

    devices = args.field_devices or ""
    if devices not in ("", ALL, CPU):
        raise Refused(
            f"devices {quoted(devices)} are not for `fwtui rank`, whose ranks are there already; give cpu, all or nothing"
        )
    kernel = kernel_named(args.field_kernel) if args.field_kernel else AUTO
    on_cpu = devices == CPU or (not devices and kernel.backend == "cpu")
    return assigned(world, on_cpu, not devices and kernel is AUTO, "--devices cpu")


def _lead(world: Any, ranks: tuple[RankDevice, ...], timeout: float) -> int:
    """Rank 0: have `fwtui run` ask for runs, in a process of its own, and serve it."""
    from fwtui.common.child_process import python

    events_out, requests_in = os.pipe(), os.pipe()
    front = subprocess.Popen(
        [*python("fwtui", "run", *sys.argv[2:]), f"--devices={places_text(ranks)}"],
        stdin=subprocess.DEVNULL,
        pass_fds=(events_out[0], requests_in[1]),
        env={**os.environ, GIVEN: f"{events_out[0]},{requests_in[1]}"},
        start_new_session=True,  # it outlives the ranks, to close the recording
    )
    os.close(events_out[0])
    os.close(requests_in[1])
    on_signals(lambda signum, frame: front.send_signal(signum))
    _serve(world, ranks, timeout, events_out[1], requests_in[0])
    code = front.wait()
    return code if code >= 0 else SIGNALLED - code


def _serve(world: Any, ranks: tuple[RankDevice, ...], timeout: float, events_out: int = -1, requests_in: int = -1) -> None:
    from fwtui.engine.links import values_of_all
    from fwtui.measure.rank import Rank, share_cores

    requests = os.fdopen(requests_in, "rb") if requests_in >= 0 else io.BytesIO()
    origin = values_of_all(world, requests.readline())[0]
    if origin:  # else nothing can run
        share_cores(world, [place.host for place in ranks])
        Rank(world, ranks, timeout, lambda fault: report(fault.message), world.Abort).serve(events_out, float(origin), requests)
