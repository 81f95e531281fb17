"""`fwtui doctor`: what is here, what is missing, and what fixes it."""

from __future__ import annotations

import argparse
import sys

from fwtui import hardware
from fwtui.commands import OK
from fwtui.doctor import print_report

NAME = "doctor"
HELP = "say what is here, what is missing, and the exact command that fixes it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extra", action="store_true", help="print only the CUDA extra that fits this machine, if any")


def execute(given: argparse.Namespace) -> int:
    if given.extra:
        found = hardware.gpus().gpus
        print(hardware.cuda_extra(found[0].driver, [g.compute_capability for g in found]) or "" if found else "")
        return OK
    return print_report(sys.stdout)
