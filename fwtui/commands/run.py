"""Run experiments and print their results as a table, or as JSON lines with --json."""

from __future__ import annotations

import argparse
import os
import shlex
import signal

from fwtui.analysis.causes import hints
from fwtui.analysis.columns import TableRow, texts
from fwtui.analysis.report import result
from fwtui.commands.support.experiment_options import (
    add_experiment_options,
    check_device,
    experiments_of_every_kernel,
    parse_experiments,
)
from fwtui.commands.support.printing import add_json_option, reasons, runs
from fwtui.commands.support.recording_options import add_recording_options, close_session, live_session, with_progress
from fwtui.commands.support.stderr_reporter import print_message, show_progress
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, SIGNALLED, USAGE, WORKER_DIED, WRONG
from fwtui.common.signals import Stopped, on_signals
from fwtui.common.text import quoted, sanitise
from fwtui.experiment.experiment import Settled, kernel_named
from fwtui.experiment.user_kernel_registry import user_kernels
from fwtui.live.counters import PROFILED
from fwtui.live.protocols import finish
from fwtui.live.session import Live
from fwtui.machine import hardware
from fwtui.machine.device_choice import settle_here
from fwtui_kernels.own import source_of

MAX_HINTS = 3  # hints per run below the table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser)
    add_json_option(parser, "one JSON object per run")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options shared with `fwtui.run`: all except the output format."""
    add_experiment_options(parser)
    about = "run every kernel that accepts this graph on this machine, once each; the skipped ones are listed"
    parser.add_argument("--all", action="store_true", help=about)
    parser.add_argument("--baseline", metavar="ID", help="kernel that speedups are relative to; it runs first")
    parser.add_argument(
        "--counters", action="store_true", help="print hardware counters after each run, from a separate profile by ncu"
    )
    add_recording_options(parser)


def execute(args: argparse.Namespace) -> int:
    settled = settle_all(args)
    live = live_session(args)
    reason = "closed"
    try:
        with_progress(live)
        code = _run_all(live, settled, args)
    except Stopped as stopped:
        on_signals(signal.SIG_IGN)  # a second Ctrl-C must not cut the end off the recording
        reason, code = "signal", SIGNALLED + stopped.signum
    finally:
        live.close(reason)
    return code


def settle_all(args: argparse.Namespace) -> list[Settled]:
    """Settle the requested runs, that of the baseline first: a mistake in the last one is reported before the first begins.

    Raises Refused.
    """
    if args.all:
        settled = _every(args)
    else:
        requested = parse_experiments(args, hardware.gpu_present())
        check_device(args, (experiment.kernel for experiment in requested))
        settled = [settle_here(experiment) for experiment in requested]
    if args.baseline is not None:
        args.baseline = kernel_named(args.baseline).id
        settled = _first(args.baseline, settled)
    return settled


def run_one(live: Live, experiment: Settled, args: argparse.Namespace) -> int:
    """Run an experiment to its end, with its counters; return its exit code."""
    before = live.model.current
    live.start(experiment)
    finish(live)
    run = live.model.run
    if run is None or run.id == before:
        return WORKER_DIED
    if args.counters and run.state == "done":
        _count(live, run.id)
    if run.wrong:
        return WRONG
    if run.state == "failed" and run.fault is None and run.experiment.code:  # the error in a user's kernel
        return USAGE
    return {"done": OK, "refused": USAGE, "cancelled": OK}.get(run.state, WORKER_DIED)


def _every(args: argparse.Namespace) -> list[Settled]:
    settled, left_out = experiments_of_every_kernel(args, hardware.gpu_present(), settle_here)
    for kernel, reason in left_out:
        print_message(f"skipped: {kernel}: {reason}")
    if not settled:
        raise Refused("no kernel accepts this experiment here; pass another n or dtype")
    return settled


def _first(baseline: str, settled: list[Settled]) -> list[Settled]:
    if all(e.kernel != baseline for e in settled):
        kernels = ", ".join(dict.fromkeys(e.kernel for e in settled))
        raise Refused(f"the baseline {quoted(baseline)} is not among the kernels that run ({kernels}); add it to --kernel")
    return sorted(settled, key=lambda e: e.kernel != baseline)


def _run_all(live: Live, settled: list[Settled], args: argparse.Namespace) -> int:
    as_table = not args.json
    worst, hinted = OK, list[tuple[str, str]]()
    for experiment in settled:
        before = live.model.current
        code = run_one(live, experiment, args)
        worst = worst or code
        run = live.model.run
        if run is None or run.id == before:
            continue
        if as_table:
            hinted += [(f"run {run.id}", str(hint)) for hint in hints(live.model, run)[:MAX_HINTS]]
            kernel, n, total, ended = texts(TableRow(live.model, run), "asked", "n", "total", "result")
            print_message(f"run {run.id} {run.state}: {kernel} n {n} {f'{total} ' if run.seconds is not None else ''}{ended}")
        elif args.json:
            print(as_json(result(live.model, run, args.baseline)), flush=True)
    if as_table and live.model.runs:
        print("\n".join([*runs(live.model, args.baseline), *reasons(hinted)]), flush=True)
        own = [one for name, one in user_kernels().items() if any(e.kernel == name for e in settled)]
        for path in (source_of(one.path) for one in own if one.kernel.backend == "cuda"):
            watch = f"fwtui watch {sanitise(shlex.quote(os.path.relpath(path)))}"
            print_message(f"verification compares distances; `{watch}` also checks for races and divergent barriers")
    recorded = OK if args.record is None else close_session(live, args)
    return worst or recorded


def _count(live: Live, run: int) -> None:
    """Write the run's hardware counters into the session; a notice gives the reason if there are none."""
    show_progress(f"profiling run {run}")
    try:
        live.count(run)
    except Refused as refusal:
        print_message(str(refusal))
    finish(live)
    show_progress("")
    if live.model.runs[run].counted:
        print_message(f"run {run} has counters ({PROFILED}); --json shows them")
