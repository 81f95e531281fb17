"""The best kernels, this device's limit and the Python packages that are installed, side by side, verified, measured in turns."""

from __future__ import annotations

import argparse
import signal
from typing import Any

from fwtui import __version__
from fwtui.analysis.columns import BENCHED, LEAST, TableRow, columns_of, head, line
from fwtui.analysis.report import markdown, result
from fwtui.campaigns.bench import Bench, BenchEntrant, Heat, is_peer
from fwtui.commands.support.asking import choices_of
from fwtui.commands.support.narrating import say
from fwtui.commands.support.own_kernel import add_own, admitted
from fwtui.commands.support.printing import add_forms, folded, table
from fwtui.commands.support.recording import add_recording, closed, live_session, say_recording_failure
from fwtui.common import units
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, SIGNALLED, WRONG
from fwtui.common.text import clean, instead, quoted
from fwtui.experiment.experiment import Experiment, changed, kernel_named
from fwtui.experiment.fields import BY_NAME
from fwtui.live.session import Live
from fwtui.machine import hardware
from fwtui.machine.auto import auto_device
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.peers import PACKAGES, RUNGS, installed

SIZES = {"cpu": "256,512,1024", "cuda": "1024,2048,4096,8192"}
GRAPH = ("kind", "density", "weights", "real", "negative", "connected", "seed", "device")
RESULT = (
    *("n", "dtype", "kernel", "peer", "auto", "backend", "tile", "options", "launch"),
    *("seconds", "spread", "turns", "passes"),
    *("relaxations_per_second", "limit_relaxations_per_second", "limit_form", "share_of_limit", "ratio_to_best_peer"),
    *("best_peer", "verified", "checksum"),
)
BEST_RUNGS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--n", metavar="N,...", help="sizes; default: 256,512,1024, with a GPU 1024 to 8192")
    parser.add_argument("--dtype", default="float32", metavar="TYPE,...", help="number types; default: float32")
    parser.add_argument("-k", "--kernel", metavar="ID,...", help="kernels; default: auto and the best known rungs")
    peers = ", ".join((*RUNGS, *PACKAGES))
    add_own(parser)
    parser.add_argument("--peers", metavar="ID,...", help=f"other packages: {peers}, or none; default: those installed")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each kernel and package; default: 3")
    parser.add_argument("--repeats", type=int, default=0, help="passes in a turn; default: one second's worth, up to 50")
    about = "time for everything; what does not fit is left out, and named"
    parser.add_argument("--seconds", type=float, default=300.0, help=about)
    for field in map(BY_NAME.__getitem__, GRAPH):
        parser.add_argument(f"--{field.name}", metavar=field.metavar, help=field.help.replace("%", "%%"))
    form = add_forms(parser, "one JSON object")
    form.add_argument("--markdown", action="store_true", help="a Markdown table on stdout")
    add_recording(parser)
    parser.set_defaults(telemetry_hz=2.0)


def execute(args: argparse.Namespace) -> int:
    base, names, others, sizes, dtypes = _grid(args)
    here = auto_device(base)
    heats = [(n, dtype, [*(names or _best(here.backend, dtype)), *others]) for n in sizes for dtype in dtypes]
    of_kernels = {kernel_named(name).backend for _, _, all_names in heats for name in all_names if name != AUTO.id}
    devices = sorted({here} | {here.on(backend) for backend in of_kernels & {"cpu", here.backend}})
    live = live_session(args, base.device)
    live.sinks.append(say_recording_failure)
    bench = Bench(live, args.rounds, args.seconds, say)
    reason = "closed"
    try:
        try:
            bench.measure_limits(devices)
            for place, (n, dtype, all_names) in enumerate(heats):
                bench.heat([changed(base, kernel=name, n=n, dtype=dtype) for name in all_names], 1 / (len(heats) - place))
        except KeyboardInterrupt:
            reason = "signal"  # what was measured so far is shown
        print("\n".join(_printed(args, bench, live)), flush=True)
    finally:
        recorded = closed(live, args, reason)
    if reason == "signal":
        return SIGNALLED + signal.SIGINT
    if any(run.wrong for heat in bench.heats for entrant in heat.entrants for run in entrant.runs):
        return WRONG
    return recorded or (OK if any(heat.entrants for heat in bench.heats) else WRONG)


def _grid(args: argparse.Namespace) -> tuple[Experiment, list[str], list[str], list[int], list[str]]:
    """The graph and how often, kernels (none: the best), peers, sizes, number types. Raises Refused."""
    for word, least, most in (("rounds", 1, 100), ("repeats", 0, 1000), ("seconds", 1, 86400)):
        if not least <= getattr(args, word) <= most:
            raise Refused(f"{word} {getattr(args, word):g} is outside {least} to {most}; choose a value in between")
    changes: dict[str, Any] = {"repeats": args.repeats}
    for name in GRAPH:
        text = getattr(args, name)
        if text is not None:
            changes |= BY_NAME[name].read(text)
    if changes.get("device") == "simulator":
        raise Refused("nothing is timed in the simulator, so nothing can be compared there; choose auto or a GPU's number")
    base = Experiment(**changes)
    backend = auto_device(base).backend
    dtypes = choices_of(args.dtype, "dtype")
    args.kernel = admitted(args.kernel, args)
    names = choices_of(args.kernel, "kernel") if args.kernel is not None else []
    if args.peers is None:
        others = [name for name in (*RUNGS, *PACKAGES) if installed(name) and kernel_named(name).backend in ("cpu", backend)]
    else:
        others = [] if args.peers == "none" else [word.strip() for word in args.peers.split(",")]
    for name in others:
        if not is_peer(name):
            raise Refused(f"there is no peer {quoted(name)}; {instead(name, (*RUNGS, *PACKAGES, 'none'))}")
    usual = SIZES[backend]
    names = [name for name in names if name not in others]
    return base, names, others, sorted(choices_of(usual if args.n is None else args.n, "n")), dtypes


def _best(backend: str, dtype: str) -> list[str]:
    rungs = [AUTO.id, *(kernel.id for kernel in in_order(backend, dtype)[:BEST_RUNGS])]
    return [*rungs, in_order("cpu", dtype)[0].id] if backend == "cuda" else rungs


def _printed(args: argparse.Namespace, bench: Bench, live: Live) -> list[str]:
    if args.json:
        return [as_json(data(bench, live))]
    rows = [line(BENCHED, _row(heat, entrant, live)) for heat in bench.heats for entrant in heat.ranking]
    remarks, titles = remarks_on(bench), head(BENCHED)
    if args.markdown:
        right = [column.title or "±" for column in columns_of(BENCHED) if column.right]
        return [*markdown(head(BENCHED, "±"), rows, right), "", *(f"{words}  " for words in [_machine(live), *remarks])]
    return [
        *folded([_machine(live)]),
        "",
        *table([titles, *rows], LEAST, wrapped=[titles.index("choices"), -1]),
        "",
        *folded(remarks),
    ]


def _row(heat: Heat, entrant: BenchEntrant, live: Live) -> TableRow:
    best = heat.best_peer
    label, ended = "best peer" * (entrant is best), "verified" * entrant.right
    return TableRow(live.model, entrant.run, label=label, ended=ended, best=best.run.rate if best is not None else None)


def remarks_on(bench: Bench) -> list[str]:
    """How it was measured, what the packages compute with, and who was left out."""
    notes = ["total: median of the passes of all turns; ±: half of the range of the turns' medians. All distances are verified."]
    if any(entrant.name in ("scipy", "networkx") for heat in bench.heats for entrant in heat.entrants):
        notes.append("SciPy and NetworkX compute in float64, whatever the type; NetworkX makes its array inside the clock.")
    for heat in bench.heats:
        if heat.cut_short:
            notes.append(f"n {heat.n} {heat.dtype}: its time was over before all turns were done; give --seconds more")
        notes += [f"left out: {name}, n {heat.n} {heat.dtype}: {why}" for name, why in heat.left_out]
    return notes


def data(bench: Bench, live: Live) -> dict[str, Any]:
    """Everything under stable names; seconds, relaxations per second, shares of 1, None if not known."""
    results: list[dict[str, Any]] = []
    for heat in bench.heats:
        for entrant in heat.ranking:
            extra = {
                "peer": is_peer(entrant.name),
                "tile": entrant.experiment.tile or None,
                "turns": [run.seconds for run in entrant.runs],
                "passes": len(entrant.passes),
                "ratio_to_best_peer": heat.ratio(entrant),
                "best_peer": heat.best_peer.name if heat.best_peer is not None else None,
                "verified": entrant.right,
            }
            whole = result(live.model, entrant.run)
            fields = {**whole["experiment"], **whole, **extra}
            results.append({name: fields[name] for name in RESULT})
    here, gpu = hardware.machine(), live.model.gpu
    left_out = [{"kernel": name, "n": h.n, "dtype": h.dtype, "why": why} for h in bench.heats for name, why in h.left_out]
    return {
        "machine": {"system": here.system, "cpu": here.cpu, "cores": here.cores, "gpu": gpu.name if gpu is not None else None},
        "versions": _versions(),
        "results": results,
        "left_out": left_out,
    }


def _machine(live: Live) -> str:
    machine, gpu = hardware.machine(), live.model.gpu
    cores = f", {units.counted(machine.cores, 'core')}" if machine.cores else ""
    where = f"{machine.cpu}{cores}" + (f"; {gpu.name}" if gpu is not None else "")
    return clean(f"{where}; {', '.join(f'{name} {version}' for name, version in _versions().items())}")


def _versions() -> dict[str, str]:
    names = ("numba", *RUNGS, *dict.fromkeys(PACKAGES.values()))
    installed_here = {name: version for name in names if (version := hardware.version_of(name)) is not None}
    return {"fwtui": __version__, **installed_here}
