"""Compare recorded runs with a baseline: change of the median time and of each phase, with a significance test."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import Any

from fwtui.analysis.bottleneck import reason_of
from fwtui.analysis.columns import COMPARED_HEAD, MIN, comparison_cells
from fwtui.analysis.compare import NOT_COMPARED, SLOWER, ComparedRun, Comparison, compare, pairs
from fwtui.analysis.explanation import speedup_causes
from fwtui.analysis.phase_table import roofs_of
from fwtui.analysis.warps import describe_mix, loop_facts, main_samples, mix_changes, reason_changes, stall
from fwtui.commands.support.printing import add_json_option, folded, reasons, table
from fwtui.commands.support.stderr_reporter import session_exit_code
from fwtui.common import gc_pause, units
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import WRONG
from fwtui.common.text import excerpt, quoted, sanitise
from fwtui.sessions.folders import stem
from fwtui.sessions.library import load_model, resolve
from fwtui.stream.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "baseline, then the runs to compare with it; one session: its runs, compared with the first verified run of their "
    about += "graph; two sessions: every experiment that is in both"
    parser.add_argument("entrants", nargs="+", metavar="SESSION[:RUN]", help=about)
    add_json_option(parser, "one JSON object per comparison")
    about = "also show the changes of the per-phase times, of the stages that are not timed, and of the warp stall reasons"
    parser.add_argument("--phases", action="store_true", help=about)
    parser.add_argument("--fail-slower", action="store_true", help="return exit code 1 if a run is SLOWER")


@gc_pause.paused()  # results are many, and none is freed before the end
def execute(args: argparse.Namespace) -> int:
    entrants = [_entrants(text) for text in args.entrants]
    comparisons = [(*pair, compare(*pair)) for pair in _pairs([runs for runs, _ in entrants])]
    if args.json:
        print("\n".join(as_json(data(*comparison)) for comparison in comparisons), flush=True)
    else:
        last, why, because = None, dict[str, None](), list[tuple[str, str]]()
        titles, *rows = [COMPARED_HEAD]
        for entrant, baseline, found in comparisons:
            if baseline is not last:
                rows.append(comparison_cells(baseline, None))
            if found.verdict == NOT_COMPARED:  # usually many have the same reason, which is printed once below
                why[f"not compared: {found.why}"], found = None, found._replace(why="")
            rows.append(comparison_cells(entrant, found))
            because.append((entrant.label, rows[-1][-1]))
            last = baseline
        waits = dict(_waits(one) for pair in comparisons for one in (pair[1], pair[0]))
        below = [line for made in comparisons for line in ("", *_parts(*made))] if args.phases else []
        cells = [row[:-1] for row in (titles, *rows)]  # the last column has sentences, printed below
        above = [*table(cells, (*MIN, "n", "kernel")), *folded(why), *reasons(because), *reasons(waits.items())]
        print("\n".join([*above, *below]), flush=True)
    slower = args.fail_slower and any(found.verdict == SLOWER for _, _, found in comparisons)
    return WRONG if slower else max(code for _, code in entrants)


def _entrants(text: str) -> tuple[list[ComparedRun], int]:
    """Return one run, or all runs of a session, and the exit code of the session."""
    name, colon, number = text.rpartition(":")
    whole = not colon or not (number.isascii() and number.isdecimal()) or os.path.exists(text)
    path = resolve(text if whole else name)
    model, complete = load_model(path)
    session = sanitise(stem(path))
    runs = model.runs if whole else {r: run for r, run in model.runs.items() if str(r) == number}
    if not runs:
        numbers = ", ".join(map(str, model.runs)) or "none"
        raise Refused(f"{session} has no run{'' if whole else ' ' + excerpt(number)}; its runs are: {numbers}")
    return [ComparedRun(model, run, session) for run in runs.values()], session_exit_code(path, complete)


def _pairs(groups: list[list[ComparedRun]]) -> list[tuple[ComparedRun, ComparedRun]]:
    """Return the (run, baseline) pairs of the command line. Raises Refused if there is nothing to compare."""
    if len(groups) == 1:
        graphs = [e.run.experiment.graph for e in groups[0]]
        counts, verified_first = Counter(graphs), sorted(groups[0], key=lambda e: not e.run.verified)
        firsts = {e.run.experiment.graph: e for e in verified_first[::-1]}
        # the only run of a graph is NOT COMPARED with the first one
        bases = [firsts[graph] if counts[graph] > 1 else verified_first[0] for graph in graphs]
        compared = ((e, base) for e, base in zip(groups[0], bases, strict=True) if e is not base)
        found = sorted(compared, key=lambda pair: pair[1].run.id)
    elif len(groups[0]) > 1:
        found = [pair for group in groups[1:] for pair in pairs(group, groups[0])]
        if not found:
            raise Refused("the sessions have no experiment in common; name the runs, like `fwtui compare A:1 B:2`")
        return found
    else:
        found = [(entrant, groups[0][0]) for group in groups[1:] for entrant in group]
    if not found:
        raise Refused(f"{quoted(groups[0][0].label)} is one run, and a comparison needs two; name another session or run")
    return found


def data(entrant: ComparedRun, baseline: ComparedRun, found: Comparison) -> dict[str, Any]:
    """Return the fields of a comparison; `interval` is the speedup's, 95 %, and null with too few repetitions."""
    return {
        "session": entrant.session,
        "run": entrant.run.id,
        "kernel": entrant.run.experiment.kernel,
        "n": entrant.run.n or None,
        "seconds": entrant.run.seconds,
        "baseline_session": baseline.session,
        "baseline": baseline.run.id,
        "baseline_kernel": baseline.run.experiment.kernel,
        "baseline_seconds": baseline.run.seconds,
        "verdict": found.verdict,
        "why": found.why,
        "because": list(speedup_causes(found)),
        "speedup": found.speedup,
        "interval": found.interval,
        "differs": list(found.differs),
        **{
            name: [{"part": p.key, "baseline": p.baseline, "seconds": p.seconds, "change": p.change} for p in parts]
            for name, parts in (("phases", found.phases), ("stages", found.stages))
        },
        "warps": _warps(entrant.run, baseline.run),
    }


def _warps(run: Run, baseline: Run) -> dict[str, Any] | None:
    """Return changed shares of samples and instructions in the slowest phases; None if a run was not sampled."""
    ours, theirs = main_samples(run), main_samples(baseline)
    if ours is None or theirs is None:
        return None
    reasons = [{"reason": one.reason, "baseline": one.baseline, "run": one.run} for one in reason_changes(ours, theirs)]
    mix = [{"instruction": name, "baseline": there, "run": here} for name, there, here in mix_changes(ours.mix, theirs.mix)]
    return {"reasons": reasons, "inner_loop": mix}


def _waits(entrant: ComparedRun) -> tuple[str, str]:
    """Return the main stall reason of a run and its instructions per relaxation; empty without PC samples."""
    samples = main_samples(entrant.run)
    if samples is None:
        return entrant.label, ""
    reason = reason_of(entrant.run, roofs_of(entrant.model, entrant.run).issue_slots, samples)
    each = loop_facts(samples).each
    needed = f"; {units.digits(each)} instructions per relaxation" if each is not None else ""
    return entrant.label, f"{reason}{needed}"


def _parts(entrant: ComparedRun, baseline: ComparedRun, found: Comparison) -> list[str]:
    rows = [(f"{entrant.label} against {baseline.label}", "baseline", "run", "change")]
    for part in (found.total, *found.phases, *found.stages):
        change = f"{100 * part.change:+.1f} %" if part.change is not None else "-"
        rows.append((part.title, units.duration(part.baseline), units.duration(part.seconds), change))
    ours, theirs = main_samples(entrant.run), main_samples(baseline.run)
    loops = list[str]()
    if ours is not None and theirs is not None:
        for one in reason_changes(ours, theirs):
            there, here = one.baseline or 0.0, one.run or 0.0
            rows.append(
                (stall(one.reason).label, units.percent(there), units.percent(here), f"{100 * (here - there):+.0f} points")
            )
        loops = [f"inner loop: {describe_mix(theirs.mix) or 'unknown'} -> {describe_mix(ours.mix) or 'unknown'}"]
    differs = [f"differs in {', '.join(found.differs)}"] if found.differs else []
    return [*table(rows), *folded(loops), *differs]
