"""The fields of an experiment, each with its title, help, parser and formatter.

The form of the dashboard and the command line are generated from this list.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwtui.common.errors import Refused
from fwtui.common.text import excerpt, quoted, suggest
from fwtui.experiment.device import ALL, DeviceId, places
from fwtui.experiment.experiment import KINDS, MAX_NEGATIVE_SHARE, MAX_SEED, MAX_WEIGHT, Experiment, defaults, kernel_named
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.graphs.file_options import NO_EDGE_HELP, UNDIRECTED_HELP, WEIGHT_HELP, parse_no_edge
from fwtui.graphs.formats import read_help
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import MAX_N, Kernel

UNTIL_STABLE = "stable"
KERNEL_DEFAULT = "the kernel's own"
YES_NO = "YES|NO"
_OF_KERNEL = ("tile", "launch", "dtype")  # fields whose default depends on the kernel
Parse = Callable[[str], Any]  # raises Refused
Choices = Callable[[Kernel, bool], tuple[str, ...]]  # values for a kernel; True: in the simulator


@dataclass(frozen=True, slots=True)
class Field:
    """A setting of an experiment, with its parser and formatter."""

    name: str
    title: str
    help: str
    parse: Parse
    metavar: str
    short: str = ""
    choices: Choices | None = None  # None: free text

    def read(self, text: str) -> dict[str, Any]:
        """Parse the text and return changes to the Experiment. Raises Refused."""
        value = self.parse(text)
        return {"low": value[0], "high": value[1]} if self.name == "weights" else {self.name: value}

    def show(self, experiment: Experiment) -> str:
        """Format the experiment's value, such that `read` returns the same value."""
        if self.name == "weights":
            return f"{_text(experiment.low)}..{_text(experiment.high)}"
        value = getattr(experiment, self.name)
        return UNTIL_STABLE if self.name == "repeats" and not value else _text(value)


def _text(value: str | float) -> str:
    """Format a value as the shortest text that parses to the same value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)


def _number(name: str, low: float, high: float, whole: bool = True) -> Parse:
    def parse(text: str) -> float:
        try:
            value = int(text.replace("_", "")) if whole else float(text)
        except ValueError:
            raise Refused(f"{name} {quoted(text)} is not {'an integer' if whole else 'a number'}; pass {low} to {high}") from None
        if not low <= value <= high:  # a NaN fails too
            raise Refused(f"{name} {excerpt(text)} is outside {low} to {high}; pass a value in this range")
        return value

    return parse


def vertices(most: int) -> Parse:
    """Return a parser for a number of vertices from 1 to `most`."""
    return _number("n", 1, most)


def _share(title: str, most: float) -> Parse:
    def parse(text: str) -> float:
        plain = text.strip()
        try:
            value = float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)
        except ValueError:
            raise Refused(f"{title} {quoted(text)} is not a share; pass 0 to {most:g}, or a percentage like 30%") from None
        if not 0 <= value <= most:
            raise Refused(f"{title} {excerpt(text)} is outside 0 to {most:g}; pass a share like 0.3 or a percentage like 30%")
        return value

    return parse


def _weights(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError
        ends = float(low), float(high)
    except ValueError:
        raise Refused(f"weights {quoted(text)} are not a range; pass two numbers like 1..16") from None
    if not all(math.isfinite(x) and abs(x) <= MAX_WEIGHT for x in ends):
        raise Refused(f"weights {excerpt(text)} exceed {MAX_WEIGHT} in magnitude; pass smaller ones")
    if ends[0] > ends[1]:
        raise Refused(f"weights {excerpt(text)} are in descending order; write {high.strip()}..{low.strip()}")
    return ends


def _repeats(text: str) -> float:
    return 0 if text.strip() == UNTIL_STABLE else _number("repeats", 1, 1000)(text)


def _kernel(text: str) -> str:
    return kernel_named(text).id


def _flag(name: str, title: str, help: str) -> Field:
    def parse(text: str) -> bool:
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise Refused(f"{name} {quoted(text)} is neither yes nor no; pass one of them")
        return text.lower() in ("yes", "true", "1")

    return Field(name, title, help, parse, YES_NO, choices=lambda k, s: ("no", "yes"))


def _checked(check: Callable[[str], object]) -> Parse:
    """Return a parser that returns the text unchanged if it passes the check."""

    def parse(text: str) -> str:
        check(text)
        return text

    return parse


def _kind(text: str) -> str:
    if text.strip() not in KINDS:
        raise Refused(f"there is no graph kind {quoted(text)}; {suggest(text, KINDS)}")
    return text.strip()


def _devices(kernel: Kernel, simulated: bool) -> tuple[str, ...]:
    """Return the device lists that the form offers; the command line accepts others too."""
    if not kernel.ranked or simulated:
        return ()
    if kernel.backend == "cpu":
        return ("", *(",".join(["cpu"] * count) for count in (2, 3, 4)))
    return ("", ALL, *(",".join(map(str, range(count))) for count in (2, 3, 4, 8)))


_WHICH = (
    "kernel id (`fwtui kernels` lists them), ./mine.py for your kernel (`fwtui new` writes one), or auto for the best known one"
)

_KINDS = (
    "graph generator: random (G(n, p)), grid (2-D lattice), road (grid with gaps and motorways), small-world (ring with "
    "shortcuts), power-law (few hubs)"
)

FIELDS: tuple[Field, ...] = (
    Field("kernel", "Kernel", _WHICH, _kernel, "ID", "k", lambda k, s: (*known_kernels(), AUTO.id)),
    Field("n", "n", f"number of vertices, 1 to {Kernel.max_n}, on several devices up to {MAX_N}", vertices(MAX_N), "N", "n"),
    Field("file", "Graph file", f"graph file to read instead of generating a graph: {read_help()}", str, "PATH"),
    Field("weight", "Weight column", WEIGHT_HELP, str, "NAME"),
    Field("no_edge", "No edge", NO_EDGE_HELP, _checked(parse_no_edge), "VALUE"),
    _flag("undirected", "Undirected", UNDIRECTED_HELP),
    Field("kind", "Graph kind", _KINDS, _kind, "KIND", choices=lambda k, s: KINDS),
    Field(
        *("density", "Density", "edge probability of a random graph, 0 to 1 or a percentage like 30%"),
        *(_share("density", 1), "P", "d"),
    ),
    Field("weights", "Weights", "range of edge weights LOW..HIGH", _weights, "LOW..HIGH"),
    _flag("real", "Real weights", "real weights (multiples of 1/256) instead of integers"),
    Field(
        "negative",
        "Negative",
        f"share of negative edges, 0 to {MAX_NEGATIVE_SHARE:g}; negative cycles do not occur",
        _share("negative share", MAX_NEGATIVE_SHARE),
        "SHARE",
    ),
    _flag("connected", "Connected", "add the edges i -> i+1, so that the graph is strongly connected"),
    _flag("exact", "Exact count", "generate exactly density x n(n-1) edges instead of drawing each edge"),
    Field(
        "seed",
        "Seed",
        "non-negative seed of the generator; the same seed gives the same graph on every machine",
        _number("seed", 0, MAX_SEED),
        "SEED",
        "s",
    ),
    Field("dtype", "Type", "data type of the distances", str, "TYPE", choices=lambda k, s: k.dtypes),
    Field(
        *("tile", "Tile", "side of a square tile, in vertices", _number("tile", 1, 1024), "SIDE", "t"),
        lambda k, s: tuple(map(str, k.tiles_for(s))),
    ),
    Field(
        *("launch", "Launch", "launch mode: eager (stream launches) or graph (CUDA graph)", str, "MODE"),
        choices=lambda k, s: ("eager",) if s else k.launch_modes,
    ),
    Field(
        *("memory", "Memory", "memory of the matrix: device, pinned, mapped or managed", str, "KIND"),
        choices=lambda k, s: ("device",) if s else k.memories,
    ),
    Field(
        "repeats",
        "Repeats",
        f"number of timed repetitions, 1 to 1000, or {UNTIL_STABLE}: until the median time converges",
        _repeats,
        "COUNT",
        "r",
    ),
    Field(
        "budget",
        "Budget",
        "time budget of the timed repetitions in seconds, 0.1 to 3600",
        _number("budget", 0.1, 3600, whole=False),
        "SECONDS",
    ),
    Field(
        *("verify", "Verify", "verification: auto, full (SciPy), sample (Dijkstra from some sources) or off", str, "HOW"),
        choices=lambda k, s: ("auto", "full", "sample", "off"),
    ),
    Field(
        "device", "Device", "device for GPU kernels: a CUDA device index, simulator, or auto", _checked(DeviceId.parse), "DEVICE"
    ),
    Field(
        *("devices", "Devices", "devices that share the graph: GPUs like 0,1, all for all GPUs, or cpu,cpu"),
        *(_checked(places), "LIST"),
        choices=_devices,
    ),
)
BY_NAME = {field.name: field for field in FIELDS}


def default_text(field: Field) -> str:
    """Return the default of a field as text; empty if it has none."""
    if field.name in _OF_KERNEL:
        return KERNEL_DEFAULT
    if field.name in ("kernel", "n"):
        return f"{field.show(defaults(False))}; with a GPU {field.show(defaults(True))}"
    return field.show(Experiment())
