"""Say what is here, what is missing, and the exact command that fixes it; with --measure, what it can do at most."""

from __future__ import annotations

import argparse
import sys

from fwtui.commands import OK, WORKER_DIED
from fwtui.commands.support.doctor_checks import limit_lines, print_report
from fwtui.commands.support.narrating import say
from fwtui.common.text import clean
from fwtui.live.protocols import finish
from fwtui.live.session import Live
from fwtui.machine import hardware

ORDER = 210


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extra", action="store_true", help="print only the CUDA extra that fits this machine, if any")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure what this CPU and GPU can do at most: relaxations per second in every form, and copying; half a minute, "
        "on an idle machine; kept for later runs",
    )


def execute(given: argparse.Namespace) -> int:
    if given.extra:
        print(hardware.cuda_extra(hardware.gpus()) or "")
        return OK
    if given.measure:
        return measure()
    return print_report(sys.stdout)


def measure() -> int:
    """Measure the limits of every device here and print them, each as soon as it is known."""
    backends = ["cpu", *(["cuda"] if hardware.gpus().gpus and hardware.cuda_package() is not None else [])]
    live = Live(telemetry_hz=0)
    worst = OK
    try:
        for backend in backends:
            say(f"measuring the {backend.upper()}'s limits")
            live.measure_limits(backend)
            finish(live)
            known = live.model.limits.get(backend)
            if known is not None and known.complete:
                print("\n".join(map(clean, limit_lines(known))), flush=True)
            if known is None or not known.complete or known.note:
                fault = live.model.fault
                say(fault.message if fault is not None else "it was not measured")
                worst = WORKER_DIED
    finally:
        live.close()
    return worst
