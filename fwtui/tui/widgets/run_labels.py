"""Labels of a run and its state: the same on every screen, legible without colour."""

from __future__ import annotations

from fwtui.analysis.columns import VERDICTS, short_dtype, simulated
from fwtui.analysis.disturbances import disturbances
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import doing

GOOD, BAD, WARN, CALM = "$text-success", "$text-error", "$text-warning", "dim"
ENDED_EARLY = {"cancelled": ("- cancelled", CALM), "failed": ("✗ failed", BAD), "refused": ("✗ refused", BAD)}


def describe_graph(e: Experiment) -> str:
    """Describe the input graph: density 0.3 · weights 1..16, or the name of the file."""
    if e.file:
        return e.file.rsplit("/", 1)[-1]
    negative = f"negative {e.negative:g}" if e.negative else ""
    parts = (_linked(e, "density"), f"weights {e.low:g}..{e.high:g}", "real" * e.real, negative, "connected" * e.connected)
    return " · ".join(filter(None, parts))


def _linked(e: Experiment, density: str) -> str:
    """Describe the edges: density 0.3, or the kind of graph."""
    return f"{density} {e.density:g}" if e.kind == "random" else e.kind


def kernel_and_size(run: Run) -> str:
    """Return the shortest name of a run: Katz-Kider · n 4096."""
    e = run.experiment
    kernel = f"auto: {run.title or e.kernel}" if e.auto else run.title or e.kernel
    return f"{kernel} · n {run.n}" if run.n else kernel  # n is 0 until the graph file has been read


def describe_kernel(run: Run, most: int) -> str:
    """Describe a run in about `most` cells by omitting complete parts: Katz-Kider · n 4096 · tile 32 · float32."""
    e = run.experiment
    launch = e.launch if run.backend == "cuda" else ""
    parts = [kernel_and_size(run), f"tile {e.tile}" if e.tile else "", e.dtype, *chosen_options(e), launch, describe_graph(e)]
    first, *others = " · ".join(filter(None, parts)).split(" · ")
    for word in others:
        if len(first) + 3 + len(word) > most:
            break
        first += f" · {word}"
    return first


def chosen_options(e: Experiment) -> list[str]:
    """Return the options that differ from their defaults; all options of an unknown kernel."""
    try:
        defaults = {option.name: option.default for option in kernel_named(e.kernel).options}
    except Refused:
        defaults = {}
    return [f"{name} {value}" for name, value in e.options.items() if defaults.get(name) != value]


def summary(e: Experiment, most: int) -> str:
    """Summarise an experiment in one line: katz-kider · n 4096 · density 0.3 · tile 32 · float32 · graph.

    If that has more than `most` cells, abbreviate: katz-kider · n 4096 · d 0.3 · t 32 · f32 · graph.
    """
    full = _summary(e, "density", "tile", e.dtype)
    return full if len(full) <= most else _summary(e, "d", "t", short_dtype(e.dtype))


def _summary(e: Experiment, density: str, tile: str, dtype: str) -> str:
    graph = [e.file.rsplit("/", 1)[-1]] if e.file else [f"n {e.n}", _linked(e, density)]
    parts = [e.kernel, *graph, f"{tile} {e.tile}" if e.tile else "", dtype, e.launch]
    return " · ".join(filter(None, parts))


def cycle(vertices: tuple[int, ...]) -> str:
    """Format a cycle as 3 → 7 → 3, shortened in the middle if it is long."""
    way = [str(v) for v in vertices]
    if len(way) > 6:
        way = [*way[:5], "…"]
    return " → ".join(way if len(way) > 1 and way[0] == way[-1] else [*way, *way[:1]])


def describe_sampled_check(run: Run) -> str:
    """Return the verified part of the matrix, 16 rows; empty if every cell was verified."""
    found = run.verdict
    if found is None or found.verdict != "verified" or not run.n or not 0 < found.cells < run.n**2:
        return ""
    count, what = (found.cells, "cell") if found.cells < run.n else (found.cells // run.n, "row")
    return units.counted(count, what)


def verdict(run: Run, part: bool = True) -> tuple[str, str]:
    """Return the result of verification and its style; `part` adds how much was verified if not everything."""
    if run.state == "running" and run.verdict is None:
        return "not verified yet", CALM
    if run.state in ENDED_EARLY:
        return ENDED_EARLY[run.state]
    found = run.verdict
    if found is None or found.verdict == "unverified":
        return "? unverified", WARN
    if found.verdict == "verified":
        if run.simulated:
            return f"✓ {simulated(run)}", GOOD
        return " · ".join(filter(None, ("✓ verified", describe_sampled_check(run) if part else ""))), GOOD
    if found.verdict == "negative cycle":
        through = cycle(found.cycle)
        return "↻ negative cycle" + (f" through {through}" if through else ""), WARN
    if found.verdict == "wrong":
        return f"✗ INCORRECT {found.how.removeprefix('wrong').strip()}".rstrip(), BAD
    if found.verdict == "out of range":
        return f"✗ OVERFLOW {found.how}".rstrip(), BAD
    return f"? {found.verdict}", WARN


def outcome(run: Run, model: Model | None = None) -> str:
    """Return the short outcome for a table; with `model`, including disturbances."""
    if run.state == "running":
        share = run.progress.done if run.progress is not None else None
        return f"… {doing(run.stage)}" + (f" {100 * share:.0f} %" if share is not None else "")
    if run.state in ENDED_EARLY:
        return ENDED_EARLY[run.state][0]
    word, _ = verdict(run)
    if run.simulated and run.verified:
        return "✓ simulated"
    found = run.verdict.verdict if run.verdict is not None else "unverified"
    text = VERDICTS.get(found, found).upper() if run.wrong else found
    parts = filter(None, (f"{word[0]} {text}", describe_sampled_check(run)))
    disturbed = [one.word for one in disturbances(run, model.evidence(run))] if model is not None else []
    return " · ".join([*parts, *(disturbed or ["low confidence"] * bool(run.indicative))])


def is_unreliable(run: Run) -> bool:
    """Return True if the run has ended and its distances are not verified; its numbers are then struck through."""
    return run.state != "running" and run.verified is not True


def is_beginning(run: Run) -> bool:
    """Return True if the run has neither ended nor shown progress or a time."""
    return run.state == "running" and run.progress is None and run.seconds is None


def device(model: Model) -> str:
    """Describe the GPU in one line, or the available features if there is none."""
    if model.gpu is not None:
        return describe_gpu(model.gpu)
    return "no GPU · CPU kernels · simulator · replay" if model.device is not None else ""


def describe_gpu(gpu: events.Device) -> str:
    """Describe a GPU: NVIDIA H200 · 132 SMs · 4.81 TB/s peak."""
    processors = f"{gpu.multiprocessors} SMs" if gpu.multiprocessors else ""
    peak = f"{units.bandwidth(gpu.peak_bytes_per_second)} peak" if gpu.peak_bytes_per_second else ""
    return " · ".join(filter(None, (gpu.name or "GPU", processors, peak)))
