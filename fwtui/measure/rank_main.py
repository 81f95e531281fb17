"""A rank of a job on this machine: `mpiexec -n R python -P -m fwtui.measure.rank_main --devices LIST --origin SECONDS`.

mpiexec forwards requests to the stdin of rank 0, and events from its stdout, which must not contain a library's output.
"""

from __future__ import annotations

import argparse
import os
import threading
from contextlib import suppress

from fwtui.common.child_protocol import Parent
from fwtui.engine.links import gather_values, unlink_shared_memory
from fwtui.experiment.device import places
from fwtui.stream import codec, events

PID_LINE = b"ranks"  # begins the line of the ranks' process ids
BEGINS_WITHIN = 30.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="fwtui.measure.rank_main")
    parser.add_argument("--origin", type=float, required=True)
    parser.add_argument("--devices", required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--lifelines", nargs="*", default=(), help="a pipe for each rank to keep open (live.mpi_job)")
    args = parser.parse_args()
    parent = Parent()

    def report_fault(fault: events.Fault) -> None:
        parent.write(b"\n" + codec.encode(fault))  # starts a new line: another rank's line may have been cut

    def give_up(message: str) -> None:
        report_fault(events.Fault(t=0.0, source="worker", code="mpi", message=message))
        os._exit(1)

    late = threading.Timer(BEGINS_WITHIN, give_up, [f"MPI did not begin within {BEGINS_WITHIN:g} s"])
    late.daemon = True
    late.start()
    from mpi4py import MPI

    late.cancel()
    world, devices = MPI.COMM_WORLD, places(args.devices)
    unlink_shared_memory(world)
    if world.size != len(devices):
        # an mpiexec of another MPI starts each process as a separate job
        give_up(
            f"mpiexec started {world.size} of {len(devices)} processes as one job: it belongs to another MPI than mpi4py "
            f"({MPI.get_vendor()[0]}); put the mpiexec of that MPI first in PATH"
        )
    from fwtui.measure.rank_worker import Rank, share_cores

    share_cores(world, [place.host for place in devices])
    with suppress(OSError, IndexError):
        # after MPI's sockets: Linux was seen to close a dead process's later files first, so other ranks notice a death later
        os.open(args.lifelines[world.rank], os.O_WRONLY)
    roll = gather_values(world, os.getpid())
    if world.rank == 0:
        parent.write(b"%s %s\n" % (PID_LINE, b" ".join(b"%d" % pid for pid in roll)))
    Rank(world, devices, args.timeout, report_fault).serve(parent.descriptor, args.origin, parent.requests)


if __name__ == "__main__":
    main()
