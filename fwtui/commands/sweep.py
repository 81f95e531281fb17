"""`fwtui sweep`: what the dashboard's sweep screen does, without a screen."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from fwtui import hardware, units
from fwtui.commands import NOT_RECORDED, OK, WRONG
from fwtui.commands.asking import add_fields, experiments, kernel_options
from fwtui.commands.run import DRAIN_EVERY, Stopped, add_recording, live_session, narrate, on_signals, say, stop
from fwtui.errors import Refused
from fwtui.experiment import Experiment, changed, kernel_named
from fwtui.live import Live
from fwtui.report import outcome, result, table
from fwtui.run import Run
from fwtui.sweep.axis import Axis, names, read_axis, value
from fwtui.sweep.findings import Findings, findings
from fwtui.sweep.grid import Cell, Grid
from fwtui.sweep.running import PASSES_SECONDS, Sweep
from kernels import registry

NAME = "sweep"
HELP = "run every combination of several values within a time: how time grows with n, where which kernel wins, what is fastest"
WITHIN = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_fields(parser, several=names())
    parser.add_argument(
        "--within", type=float, default=WITHIN, metavar="SECONDS", help=f"for all runs together, {WITHIN:g} by default"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per cell and one of what they say together")
    add_recording(parser)
    parser.epilog = (
        "Several values: commas, `all` of those that the kernels offer, and for n 256..4096 (doubling) or 256..4096+256. "
        f"{parser.epilog or ''}"
    )


def execute(given: argparse.Namespace) -> int:
    gpu = hardware.driver_present() and bool(hardware.gpus().gpus)
    base, axes = asked(given, gpu)
    live = live_session(given)
    try:
        sweep = Sweep(live, Grid(base, axes, live.settled), given.within)
        return _run(live, sweep, given)
    except Stopped as stopped:
        on_signals(signal.SIG_IGN)
        live.close(reason="signal")
        return 128 + stopped.signum
    finally:
        live.close()


def asked(given: argparse.Namespace, gpu: bool) -> tuple[Experiment, list[Axis]]:
    """What stays the same, and what was given of what can be swept. Raises Refused."""
    plain = argparse.Namespace(**vars(given))
    texts: dict[str, str] = {}
    for name in names():
        key = f"option_{name}" if name in kernel_options() else f"field_{name}"
        text = getattr(plain, key, None)
        if text is not None:
            texts[name] = text
            setattr(plain, key, None)
    kernels = [kernel_named(name) for name in read_axis("kernel", texts["kernel"], ()).values] if "kernel" in texts else []
    plain.field_kernel = kernels[0].id if kernels else None
    base = experiments(plain, gpu)[0]
    axes = [read_axis(name, text, kernels or [registry()[base.kernel]]) for name, text in texts.items()]
    if all(len(axis.values) < 2 for axis in axes):
        raise Refused("nothing varies; give several values of something, like `fwtui sweep -n 256..4096 --tile all`")
    if given.field_budget is None:
        base = changed(base, budget=PASSES_SECONDS)
    return base, axes


def _run(live: Live, sweep: Sweep, given: argparse.Namespace) -> int:
    on_signals(stop)
    live.sinks.append(narrate)
    if live.recorder is not None:
        say(f"recording to {live.recorder.path}")
    before: Cell | None = None
    sweep.start()
    while sweep.going or live.busy:
        sweep.tick()
        live.drain()
        if sweep.current is not before:
            _told(sweep, before)
            before = sweep.current
        time.sleep(DRAIN_EVERY if live.busy else 0)
    runs = [run for cell in sweep.grid.order if (run := sweep.run(cell)) is not None]
    found = findings(live.model, list({run.id: run for run in runs}.values()))
    if given.json:
        _print_json(live, sweep, found)
    else:
        print("\n".join(lines(live, sweep, found)), flush=True)
    if any(run.wrong for run in runs):
        return WRONG
    return _recorded(live, given)


def _recorded(live: Live, given: argparse.Namespace) -> int:
    recorder = live.recorder
    live.close()
    if recorder is not None and recorder.failure is not None:
        say(recorder.failure)
    return OK if given.record is None or (recorder is not None and recorder.failure is None) else NOT_RECORDED


def _told(sweep: Sweep, cell: Cell | None) -> None:
    run = sweep.run(cell) if cell is not None else None
    if cell is not None and run is not None:
        say(f"{sweep.done} of {len(sweep.grid.order)}: {_place(sweep, cell)}: {units.duration(run.seconds)}")


def _place(sweep: Sweep, cell: Cell) -> str:
    return ", ".join(f"{a.name} {v}" for a, v in zip(sweep.grid.axes, cell.at, strict=True) if len(a.values) > 1)


def lines(live: Live, sweep: Sweep, found: Findings) -> list[str]:
    """Every cell as a row, what they say together, and what was left out and why."""
    shown = [i for i, axis in enumerate(sweep.grid.axes) if len(axis.values) > 1]
    rows: list[Sequence[str]] = [(*(sweep.grid.axes[i].name for i in shown), "total", "", "rate", "of best", "result")]
    left_out: list[str] = []
    told: set[int] = set()  # a kernel without tiles fills the cells of every tile with one run
    for cell in sweep.grid.cells.values():
        run = sweep.run(cell)
        if run is None:
            left_out.append(f"left out: {_place(sweep, cell)}: {cell.reason or sweep.left_out.get(cell.at, 'not run')}")
            continue
        if run.id in told:
            continue
        told.add(run.id)
        top = found.best_rates.get(run.n)
        rows.append(
            (
                *(value(run.experiment, sweep.grid.axes[i].name) or "-" for i in shown),
                units.duration(run.seconds),
                units.spread(run.done.spread if run.done is not None else None),
                units.rate(run.rate),
                units.percent(run.rate / top if run.rate and top else None),
                outcome(live.model, run),
            )
        )
    return [*table(rows), "", *found.sentences, *left_out]


def _print_json(live: Live, sweep: Sweep, found: Findings) -> None:
    for cell in sweep.grid.cells.values():
        run: Run | None = sweep.run(cell)
        at: dict[str, Any] = {"at": {a.name: v for a, v in zip(sweep.grid.axes, cell.at, strict=True)}}
        reason = cell.reason or sweep.left_out.get(cell.at, "not run")
        print(json.dumps(at | (result(live.model, run) if run is not None else {"left_out": reason})))
    print(json.dumps({"findings": found.data()}))
    sys.stdout.flush()
