"""Run every combination of values within a time budget; print exponents, crossovers and the fastest kernels."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Sequence
from typing import Any

from fwtui.analysis.columns import MIN, SCALED, SWEPT, TableRow, head, line
from fwtui.analysis.report import result
from fwtui.campaigns.sweep.axis import DEVICES, SweepAxis, names, read_axis, value
from fwtui.campaigns.sweep.findings import Findings, findings
from fwtui.campaigns.sweep.grid import Grid, GridCell
from fwtui.campaigns.sweep.running import PASSES_SECONDS, Sweep
from fwtui.commands.support.experiment_options import (
    add_experiment_options,
    check_device,
    check_one_graph,
    kernel_options,
    parse_experiments,
    register_requested,
)
from fwtui.commands.support.printing import add_json_option, folded, table
from fwtui.commands.support.recording_options import add_recording_options, close_session, live_session, with_progress
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common import units
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import SIGNALLED, WRONG
from fwtui.common.signals import Stopped, on_signals, restore_handlers
from fwtui.experiment.experiment import Experiment, changed, kernel_named
from fwtui.live.protocols import DRAIN_EVERY
from fwtui.live.session import Live
from fwtui.machine import hardware
from fwtui_kernels import registry

HELP = "number of devices that share one graph: the first GPUs, or processes on CPUs"
WITHIN = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser, several=names(), helps={DEVICES: HELP})
    about = f"time budget of the whole sweep (default: {WITHIN:g})"
    parser.add_argument("--within", type=float, default=WITHIN, metavar="SECONDS", help=about)
    add_json_option(parser, "one JSON object per cell and one of the findings")
    add_recording_options(parser)
    parser.epilog = (
        "Several values: separated by commas, or `all` for all values of the kernels; for n also 256..4096 (doubling) or "
        "256..4096+256. "
        f"{parser.epilog or ''}"
    )


def execute(args: argparse.Namespace) -> int:
    gpu = hardware.gpu_present()
    base, axes = base_and_axes(args, gpu)
    with restore_handlers():
        live = live_session(args)
        try:
            return _swept(live, base, axes, args)
        finally:
            live.close()


def _swept(live: Live, base: Experiment, axes: Sequence[SweepAxis], args: argparse.Namespace) -> int:
    interrupted = 0
    sweep = Sweep(live, Grid(base, axes, live.settled), args.within)
    try:
        _run(live, sweep)
    except Stopped as stopped:
        interrupted = stopped.signum
    on_signals(signal.SIG_IGN)  # a second Ctrl-C must not cut the end off the recording, nor the table
    if interrupted:
        live.close(reason="signal")
    runs = list({run.id: run for cell in sweep.grid.order if (run := sweep.run(cell)) is not None}.values())
    found = findings(live.model, runs)
    print("\n".join((_json if args.json else lines)(sweep, found)), flush=True)
    if interrupted:
        return SIGNALLED + interrupted
    recorded = close_session(live, args)
    return WRONG if any(run.wrong for run in runs) or all(run.state != "done" for run in runs) else recorded


def base_and_axes(args: argparse.Namespace, gpu: bool) -> tuple[Experiment, list[SweepAxis]]:
    """Return the fixed experiment and the requested axes. Raises Refused."""
    register_requested(args)
    plain = argparse.Namespace(**vars(args))
    plain.option = []
    texts: dict[str, str] = {}
    for name in names():
        key = f"option_{name}" if name in kernel_options() else f"field_{name}"
        text = getattr(plain, key, None)
        if text is not None:
            texts[name] = text
            setattr(plain, key, None)
    if args.field_file is not None:
        check_one_graph(["file", *texts])
    kernels = [kernel_named(name) for name in read_axis("kernel", texts["kernel"], ()).values] if "kernel" in texts else []
    plain.field_kernel = kernels[0].id if kernels else None
    if DEVICES in texts and not kernels:
        plain.field_kernel = next(k.id for k in registry().values() if k.ranked and (k.backend == "cuda") == gpu)
    base = parse_experiments(plain, gpu)[0]
    check_device(args, [kernel.id for kernel in kernels] or [base.kernel])
    axes = [read_axis(name, text, kernels or [kernel_named(base.kernel)]) for name, text in texts.items()]
    if all(len(axis.values) < 2 for axis in axes):
        raise Refused("nothing varies; pass several values of an option, such as `fwtui sweep -n 256..4096 --tile all`")
    if args.field_budget is None:
        base = changed(base, budget=PASSES_SECONDS)
    return base, axes


def _run(live: Live, sweep: Sweep) -> None:
    with_progress(live)
    before: GridCell | None = None
    sweep.start()
    while sweep.going or live.busy:
        sweep.tick()
        live.drain()
        if sweep.current is not before:
            if before is not None and (run := sweep.run(before)) is not None:
                print_message(f"{sweep.done} of {len(sweep.grid.order)}: {_place(sweep, before)}: {units.duration(run.seconds)}")
            before = sweep.current
        time.sleep(DRAIN_EVERY if live.busy else 0)


def _place(sweep: Sweep, cell: GridCell) -> str:
    return ", ".join(f"{a.name} {v}" for a, v in zip(sweep.grid.axes, cell.at, strict=True) if len(a.values) > 1)


def lines(sweep: Sweep, found: Findings) -> list[str]:
    """Format the cells as a table, the findings, and the skipped cells with reasons."""
    several = any(axis.name == DEVICES and len(axis.values) > 1 for axis in sweep.grid.axes)
    kind, fixed_columns = (SCALED, ("n",)) if several else (SWEPT, ())  # the table has a column for them
    places = [i for i, axis in enumerate(sweep.grid.axes) if len(axis.values) > 1 and axis.name not in fixed_columns]
    rows: list[Sequence[str]] = [(*(sweep.grid.axes[i].name for i in places), *head(kind))]
    bases = {point.run.id: one.points[0].run for one in found.scalings for point in one.points}
    left_out: list[str] = []
    printed: set[tuple[object, ...]] = set()  # a kernel without tiles has one experiment in the cells of all tiles
    for cell in sweep.grid.cells.values():
        run = sweep.run(cell)
        if cell.key in printed:
            continue
        printed |= {cell.key} - {()}
        if run is None:
            left_out.append(f"skipped: {_place(sweep, cell)}: {_reason(sweep, cell)}")
            continue
        at = [value(run.experiment, sweep.grid.axes[i].name) or "-" for i in places]
        row = TableRow(sweep.source.model, run, baseline=bases.get(run.id), best=found.shortest.get(run.n))
        rows.append((*at, *line(kind, row)))
    return [*table(rows, MIN), "", *folded([*found.sentences(), *left_out])]


def _json(sweep: Sweep, found: Findings) -> list[str]:
    cells: list[dict[str, Any]] = []
    for cell in sweep.grid.cells.values():
        run = sweep.run(cell)
        what = result(sweep.source.model, run) if run is not None else {"left_out": _reason(sweep, cell)}
        cells.append({"at": {a.name: v for a, v in zip(sweep.grid.axes, cell.at, strict=True)}} | what)
    return [as_json(row) for row in (*cells, {"findings": found.data()})]


def _reason(sweep: Sweep, cell: GridCell) -> str:
    return cell.reason or sweep.left_out.get(cell.key, "not run")
