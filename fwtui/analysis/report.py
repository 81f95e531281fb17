"""A run as plain data, and rows as Markdown."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import msgspec

from fwtui.analysis.causes import hints
from fwtui.analysis.columns import baseline_run, flops_per_task
from fwtui.analysis.compare import ComparedRun, speedup
from fwtui.analysis.cpu import cpu_facts, level_name, phase_facts
from fwtui.analysis.data_sheet import fp32_flops
from fwtui.analysis.disturbances import disturbances
from fwtui.analysis.explanation import explain
from fwtui.analysis.limits import limit_of, of_all_devices
from fwtui.analysis.rank_timing import gain, imbalance, rank_times
from fwtui.analysis.warps import loop_facts, shares
from fwtui.common.version import RESULT_VERSION
from fwtui.stream.events import WarpSamples
from fwtui.stream.model import Model
from fwtui.stream.quantity import throttled
from fwtui.stream.run import PhaseTime, Run
from fwtui.stream.stages import STAGES


def result(model: Model, run: Run, baseline: str | None = None) -> dict[str, Any]:
    """Return all results of a run under stable names. Units are seconds, bytes and shares of 1; None if a value is unavailable.

    Every field is explained in commands/README.md. `baseline` names the kernel of the run that the speedup is relative to.
    """
    evidence, done, verdict = model.evidence(run), run.done, run.verdict
    occupancy = run.main_occupancy
    gpu = model.gpu_of(run) if run.backend == "cuda" else None
    against = baseline_run(model, run, baseline)
    limit = limit_of(model, run)
    phases, ranks, gained = run.phases, rank_times(run), gain(model, run)
    why = explain(ComparedRun(model, run), ComparedRun(model, against) if against is not None else None)
    return {
        "version": RESULT_VERSION,
        "run": run.id,
        "kernel": run.experiment.kernel,
        "auto": run.experiment.auto or None,
        "title": run.title,
        "backend": run.backend,
        "device": gpu.name if gpu is not None else None,
        "n": run.n or None,  # a refused file has none
        "padded": run.padded or None,
        "experiment": msgspec.to_builtins(run.experiment),
        "state": run.state,
        "message": done.message if done is not None else "",
        "verified": run.verified,
        "verdict": verdict.verdict if verdict is not None else None,
        "how": verdict.how if verdict is not None else None,
        "checksum": (verdict.checksum or None) if verdict is not None else None,
        "cycle": list(verdict.cycle) if verdict is not None else [],
        "edges": run.graph.edges if run.graph is not None else None,
        "seconds": run.seconds,
        "spread": done.spread if done is not None else None,
        "count": done.count if done is not None else len(run.samples),
        "indicative": done.indicative if done is not None else None,
        "instrumentation": done.instrumentation if done is not None else None,
        "relaxations_per_second": run.rate,
        "limit_relaxations_per_second": limit.relaxations_per_second if limit is not None else None,
        "limit_clock_mhz": limit.clock_mhz if limit is not None else None,
        "limit_form": limit.form.key if limit is not None else None,
        "limit_noisy": limit.noisy if limit is not None else None,
        "share_of_limit": limit.share if limit is not None else None,
        "model_bytes_per_second": run.bandwidth,
        "peak_bytes_per_second": of_all_devices(run, gpu.peak_bytes_per_second) if gpu is not None else None,
        "peak_flops_per_second": of_all_devices(run, fp32_flops(gpu)),
        "flops_per_task": flops_per_task(model, run),
        "baseline": against.id if against is not None else None,
        "speedup": speedup(run, against),
        "because": why.sentence(sourced=True) or None,
        "limited_by": why.limiter.what if why.limiter is not None else None,
        "hints": [str(hint) for hint in hints(model, run)],
        "phases": {p.key: p.seconds for p in phases},
        "phase_details": [_phase(p) for p in phases],
        "ranks": [{"rank": r.name, "seconds": r.seconds, "phases": {p.key: p.seconds for p in r.phases}} for r in ranks],
        "imbalance": imbalance(ranks),
        "one_device": gained.reference.id if gained is not None else None,
        "speedup_of_one_device": gained.times if gained is not None else None,
        "efficiency": gained.efficiency if gained is not None else None,
        "copies": _copies(run),
        "stages": {s.key: t for s in STAGES.values() if s.in_results and (t := run.stage_seconds(s.key)) is not None},
        "occupancy": occupancy.warps / occupancy.max_warps if occupancy is not None and occupancy.max_warps else None,
        "occupancy_limited_by": list(occupancy.limiters)
        if occupancy is not None and occupancy.warps < occupancy.max_warps
        else [],
        "throttled": list(throttled(evidence.throttle)) if evidence is not None and gpu is not None else [],
        "disturbances": [str(one) for one in disturbances(run, evidence)],
        "gpu_power_watts": evidence.power_watts if evidence is not None and gpu is not None else None,
        "gpu_clock_mhz": evidence.gpu_clock_mhz if evidence is not None and gpu is not None else None,
        "sm_occupancy": evidence.sm_occupancy if evidence is not None and gpu is not None else None,
        "counters": run.counters,
        "cpu": _cpu(model, run),
        "samples": {samples.op: _samples(run, samples) for samples in run.warps},
        "not_sampled": run.sampled.note or None if run.sampled is not None else None,
    }


def _cpu(model: Model, run: Run) -> dict[str, Any] | None:
    """Return the CPU facts of a run; None if it ran on a GPU or has no facts."""
    facts = cpu_facts(model, run)
    if facts is None:
        return None
    each = {phase.key: phase_facts(facts, phase).each for phase in run.phases}
    return {
        "cores": facts.cores,
        "busy_cores": facts.busy,
        "clock_mhz": facts.clock_mhz,
        "relaxations_per_cycle": facts.each,
        "matrix_bytes": facts.matrix or None,
        "held_by": level_name(facts.level) if facts.level is not None else None,
        "bytes_per_second": facts.limit.bytes_per_second if facts.limit is not None else None,
        "noisy": bool(facts.limit is not None and facts.limit.noisy),
        "loops": {
            loop.op: {
                "lanes": loop.lanes,
                "vector_bits": loop.lanes * loop.item_bits,
                "relaxations": loop.relaxations,
                "mix": dict(loop.mix),
                "skipped_lanes": loop.skipped,
                "instructions_per_cycle": facts.instructions_a_cycle(loop, each.get(loop.op, facts.each)),
            }
            for loop in run.loops
        },
    }


def _samples(run: Run, samples: WarpSamples) -> dict[str, Any]:
    """Return the warp stall reasons of an op, in total and by line, as shares of its samples; and the mix of its inner loop."""
    listing, facts = run.listing(samples.op), loop_facts(samples)
    return {
        "samples": samples.samples,
        "rank": samples.rank,
        "reasons": shares(samples.reasons),
        "lines": [
            {
                **{"file": line.file, "line": line.line, "source": line.text},
                **{"share": line.samples / (samples.samples or 1), "reasons": shares(line.reasons)},
            }
            for line in (listing.sampled if listing is not None else ())
        ],
        "inner_loop": {**facts._asdict(), "instructions_per_relaxation": facts.each, "mix": dict(samples.mix)},
    }


def _phase(phase: PhaseTime) -> dict[str, Any]:
    seconds = phase.seconds or None
    return {
        "phase": phase.key,
        "title": phase.title,
        "seconds": phase.seconds,
        "share": phase.share,
        "launches": phase.launches,
        "relaxations": phase.relaxations,
        "relaxations_per_second": phase.relaxations / seconds if seconds else None,
        "model_bytes": phase.device_bytes,
        "model_bytes_per_second": phase.device_bytes / seconds if seconds and phase.device_bytes else None,
    }


def _copies(run: Run) -> dict[str, Any]:
    """Return seconds, bytes and bytes per second of reading a file, and of copies to and from a GPU (with reordering)."""
    copies = {}
    for stage, seconds, size in run.stage_times:
        name = STAGES[stage].copy if stage in STAGES else ""
        if not name or run.simulated or (name != "file" and run.backend != "cuda"):
            continue
        copies[name] = {"seconds": seconds, "bytes": size, "bytes_per_second": size / seconds if size and seconds else None}
    return copies


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], right: Container[str] = ()) -> list[str]:
    """Return rows as the lines of a Markdown table; columns named in `right` are right-aligned. Cells may have markup."""
    rule = ["---:" if name in right else "---" for name in head]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in (head, rule, *rows)]
