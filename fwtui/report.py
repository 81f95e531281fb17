"""A run as plain data and as a row of a table: what `fwtui run` and `fwtui replay` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fwtui import units
from fwtui.model import Model
from fwtui.run import Run

STAGES = ("graph", "load", "compile", "warm-up", "unload", "verify")


def result(model: Model, run: Run) -> dict[str, Any]:
    """Everything known of one run under stable names; seconds, bytes and shares of 1, None where not known."""
    evidence = model.evidence(run)
    occupancy = run.main_occupancy
    gpu = model.gpu if run.backend == "cuda" else None
    experiment = msgspec.to_builtins(run.experiment)
    return {
        "run": run.id,
        "kernel": run.experiment.kernel,
        "title": run.title,
        "backend": run.backend,
        "device": gpu.name if gpu is not None else None,
        "n": run.n,
        "padded": run.padded,
        "experiment": experiment,
        "state": run.state,
        "message": run.done.message if run.done is not None else "",
        "verified": run.verified,
        "verdict": run.verdict.verdict if run.verdict is not None else None,
        "how": run.verdict.how if run.verdict is not None else None,
        "checksum": (run.verdict.checksum or None) if run.verdict is not None else None,
        "cycle": list(run.verdict.cycle) if run.verdict is not None else [],
        "edges": run.graph.edges if run.graph is not None else None,
        "seconds": run.seconds,
        "spread": run.done.spread if run.done is not None else None,
        "count": run.done.count if run.done is not None else len(run.samples),
        "indicative": run.done.indicative if run.done is not None else None,
        "instrumentation": run.done.instrumentation if run.done is not None else None,
        "relaxations_per_second": run.rate,
        "model_bytes_per_second": run.bandwidth,
        "peak_bytes_per_second": gpu.peak_bytes_per_second if gpu is not None else None,
        "phases": {p.key: p.seconds for p in run.phases},
        "stages": {name: run.stage_seconds(name) for name in STAGES if run.stage_seconds(name) is not None},
        "occupancy": occupancy.warps / occupancy.max_warps if occupancy is not None and occupancy.max_warps else None,
        "occupancy_limited_by": list(occupancy.limiters) if occupancy is not None else [],
        "throttled": list(evidence.throttled) if evidence is not None else [],
        "gpu_power_watts": evidence.power_watts if evidence is not None and gpu is not None else None,
        "gpu_clock_mhz": evidence.gpu_clock_mhz if evidence is not None and gpu is not None else None,
        "sm_occupancy": evidence.sm_occupancy if evidence is not None and gpu is not None else None,
    }


COLUMNS = ("run", "kernel", "n", "tile", "dtype", "total", "", "rate", "bandwidth", "of peak", "phases", "result")


def row(model: Model, run: Run) -> tuple[str, ...]:
    """The run under COLUMNS, for people."""
    peak = model.gpu.peak_bytes_per_second if model.gpu is not None and run.backend == "cuda" else None
    share = run.bandwidth / peak if run.bandwidth is not None and peak else None
    return (
        str(run.id),
        run.experiment.kernel,
        str(run.n),
        str(run.experiment.tile or "-"),
        run.experiment.dtype,
        "not timed" if run.simulated else units.duration(run.seconds),
        units.spread(run.done.spread if run.done is not None else None),
        units.rate(run.rate),
        units.bandwidth(run.bandwidth),
        units.percent(share),
        " ".join(f"{p.title} {units.percent(p.share)}" for p in run.phases) if len(run.phases) > 1 else "-",
        outcome(model, run),
    )


def outcome(model: Model, run: Run) -> str:
    """How a run ended in a few words: verified, wrong and where, cancelled, throttled."""
    if run.state != "done":
        return (
            f"{run.state}: {run.done.message}" if run.done is not None and run.done.message not in ("", run.state) else run.state
        )
    words = []
    if run.simulated:
        words.append("simulated: correct, not timed" if run.verified else "simulated")
    if run.verdict is not None:
        verdict = run.verdict
        if verdict.verdict == "negative cycle":
            words.append("negative cycle " + " -> ".join(map(str, (*verdict.cycle, *verdict.cycle[:1]))))
        elif verdict.verdict == "verified":
            words.append("" if run.simulated else "verified")
        else:
            words.append(f"{verdict.verdict.upper()}: {verdict.how}")
    evidence = model.evidence(run)
    if evidence is not None and evidence.throttled:
        words.append("throttled: " + ", ".join(evidence.throttled))
    if run.done is not None and run.done.indicative and not run.simulated:
        words.append("indicative")
    return ", ".join(filter(None, words)) or "unverified"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns; numbers of a column end in the same place."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    right = [i for i in range(len(widths)) if any(c.isdigit() for r in rows[1:] for c in r[i][:1])]
    return [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(r, widths, strict=True))
        ).rstrip()
        for r in rows
    ]
