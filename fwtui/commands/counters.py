"""Profile one launch of each kernel function with NVIDIA Nsight Compute and print its hardware counters, not timings."""

from __future__ import annotations

import argparse

import msgspec

from fwtui.commands.support.experiment_options import add_experiment_options, parse_experiments
from fwtui.commands.support.printing import add_json_option, folded, side_by_side
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common.as_json import as_json
from fwtui.common.errors import NoGpu
from fwtui.common.exit_codes import NO_GPU, OK, USAGE
from fwtui.experiment.experiment import Experiment, Settled, changed, kernel_named
from fwtui.live.counters import METRICS, PROFILED, Counters, counter_text, measure, no_gpu
from fwtui.machine import hardware
from fwtui.machine.device_choice import settle_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser)
    add_json_option(parser, "one JSON object per kernel")


def execute(args: argparse.Namespace) -> int:
    worst = OK
    requested = parse_experiments(args, gpu=hardware.gpu_present())
    for one, experiment in zip(requested, [_settled(one) for one in requested], strict=True):
        found = experiment if isinstance(experiment, str) else measure(experiment)
        if isinstance(experiment, str) or isinstance(found, str):
            print_message(str(found))
            worst = worst or (USAGE if hardware.gpus().gpus or kernel_named(one.kernel).backend == "cpu" else NO_GPU)
        elif args.json:
            print(as_json(data(experiment, found)), flush=True)
        else:
            print("\n".join(counter_lines(experiment, found)), flush=True)
    return worst


def _settled(experiment: Experiment) -> Settled | str:
    """Settle an experiment, or return why counters are unavailable. Raises Refused for an experiment that cannot run anywhere."""
    try:
        return settle_here(experiment)
    except NoGpu as refusal:
        return str(refusal) if hardware.gpus().gpus else no_gpu()


def data(experiment: Experiment, found: dict[str, Counters]) -> dict[str, object]:
    """Return the fields of --json: seconds, bytes, shares of 1 and counts."""
    return {
        "kernel": experiment.kernel,
        "experiment": msgspec.to_builtins(changed(experiment)),
        "note": PROFILED,
        "ops": {op: dict(values) for op, values in found.items()},
    }


def counter_lines(experiment: Experiment, found: dict[str, Counters]) -> list[str]:
    """Return a heading, and a table with a column for each kernel function, or several tables if the columns do not fit."""
    what = experiment.file or f"n {experiment.n}"
    tile = f", tile {experiment.tile}" if experiment.tile else ""
    rows = [["", *found]]
    rows += [[metric.title, *(counter_text(metric, values) for values in found.values())] for metric in METRICS]
    heading = f"{experiment.kernel}, {what}{tile}, {experiment.dtype}: one launch of each op, {PROFILED}"
    return [*folded([heading]), *side_by_side(rows)]
