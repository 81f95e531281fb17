"""Open the dashboard (also without any command)."""

from __future__ import annotations

import argparse

from fwtui.commands.support.looking import add_look, preferred
from fwtui.commands.support.recording import add_recording, live_session
from fwtui.common.environment import compiled_before
from fwtui.experiment.experiment import defaults
from fwtui.machine import hardware

ORDER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recording(parser)
    add_look(parser)


def execute(given: argparse.Namespace) -> int:
    from fwtui.tui import run_dashboard

    settings = preferred(given)
    gpu = hardware.driver_present()
    experiment = settings.experiment(defaults(gpu, compiled_before()), lambda kernel: kernel.backend == "cuda" and not gpu)
    return run_dashboard(live_session(given), experiment, settings)
