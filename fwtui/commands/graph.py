"""Write the graph that `fwtui run` would generate or read, or print a small one."""

from __future__ import annotations

import argparse
import os

from fwtui.commands import add_force_option
from fwtui.commands.support.experiment_options import GRAPH, add_experiment_options, parse_experiments
from fwtui.common.environment import worker_environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK
from fwtui.common.signals import leave, on_signals, restore_handlers
from fwtui.common.streams import report_error
from fwtui.experiment.experiment import GENERATED, Experiment, settle
from fwtui.graphs.file_options import FileOptions
from fwtui.graphs.formats import written_help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser, only=GRAPH)
    parser.add_argument("-o", "--out", metavar="FILE", help=f"output file; {written_help()}")
    add_force_option(parser)


def execute(args: argparse.Namespace) -> int:
    requested = parse_experiments(args, gpu=False)
    if len(requested) > 1:
        raise Refused(f"these options describe {len(requested)} graphs, but only one can be saved; pass one value per option")
    fields = {name: getattr(requested[0], name) for name in (*GENERATED, "file", *FileOptions._fields, "dtype")}
    experiment = settle(Experiment(**fields))
    if args.owns_process:
        os.environ.update(worker_environment("real"))  # before NumPy and numba are imported
    with restore_handlers():
        on_signals(leave)  # compiled code does not raise KeyboardInterrupt
        from fwtui.measure.save_graph import TOO_LARGE, save

        try:
            save(experiment, args.out or "", args.force)
        except Exception as error:
            return report_error(error, TOO_LARGE)
    return OK
