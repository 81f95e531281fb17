"""The form's fields: the name of each setting, and how it is read from text and written as text.

One list makes both the dashboard's form and the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwtui.common.errors import Refused
from fwtui.common.text import brief, instead, quoted
from fwtui.experiment.device import ALL, DeviceId, places
from fwtui.experiment.experiment import KINDS, MAX_NEGATIVE_SHARE, MAX_SEED, MAX_WEIGHT, Experiment, kernel_named
from fwtui.experiment.own_kernels import known_kernels
from fwtui.graphs.formats import read_help
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import MAX_N, Kernel

UNTIL_STABLE = "stable"
Parse = Callable[[str], Any]  # raises Refused
Choices = Callable[[Kernel, bool], tuple[str, ...]]  # of a kernel, in the simulator or not


@dataclass(frozen=True, slots=True)
class Field:
    """One thing a user can set: its name, and how it is read from text and written as text."""

    name: str
    title: str
    help: str
    parse: Parse
    metavar: str
    short: str = ""
    choices: Choices | None = None  # None: free text
    offered: Callable[[Kernel], bool] = lambda kernel: True  # whether the form of that kernel has it

    def read(self, text: str) -> dict[str, Any]:
        """Changes to the Experiment. Raises Refused."""
        value = self.parse(text)
        return {"low": value[0], "high": value[1]} if self.name == "weights" else {self.name: value}

    def show(self, experiment: Experiment) -> str:
        """The experiment's value as text that reads back as the same."""
        if self.name == "weights":
            return f"{_text(experiment.low)}..{_text(experiment.high)}"
        value = getattr(experiment, self.name)
        return UNTIL_STABLE if self.name == "repeats" and not value else _text(value)


def _text(value: str | float) -> str:
    """The shortest text that reads back as the same."""
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
            raise Refused(f"{name} {quoted(text)} is not a {'whole ' if whole else ''}number; give {low} to {high}") from None
        if not low <= value <= high:  # a NaN fails too
            raise Refused(f"{name} {brief(text)} is outside {low} to {high}; choose a value in between")
        return value

    return parse


def vertices(most: int) -> Parse:
    """Reads a size of the graph."""
    return _number("n", 1, most)


def _share(title: str, most: float) -> Parse:
    def parse(text: str) -> float:
        plain = text.strip()
        try:
            value = float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)
        except ValueError:
            raise Refused(f"{title} {quoted(text)} is not a share; give 0 to {most:g}, or a percentage like 30%") from None
        if not 0 <= value <= most:
            raise Refused(f"{title} {brief(text)} is outside 0 to {most:g}; give a share like 0.3 or a percentage like 30%")
        return value

    return parse


def _weights(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError
        ends = float(low), float(high)
    except ValueError:
        raise Refused(f"weights {quoted(text)} are not a range; give two numbers like 1..16") from None
    if not all(math.isfinite(x) and abs(x) <= MAX_WEIGHT for x in ends):
        raise Refused(f"weights {brief(text)} reach beyond {MAX_WEIGHT}; choose smaller ones")
    if ends[0] > ends[1]:
        raise Refused(f"weights {brief(text)} run backwards; write {high.strip()}..{low.strip()}")
    return ends


def _repeats(text: str) -> float:
    return 0 if text.strip() == UNTIL_STABLE else _number("repeats", 0, 1000)(text)


def _kernel(text: str) -> str:
    return kernel_named(text).id


def _flag(name: str, title: str, help: str) -> Field:
    def parse(text: str) -> bool:
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise Refused(f"{name} {quoted(text)} is neither yes nor no; give one of them")
        return text.lower() in ("yes", "true", "1")

    return Field(name, title, help, parse, "YES|NO", choices=lambda k, s: ("no", "yes"))


def _checked(check: Callable[[str], object]) -> Parse:
    """The text unchanged, if it passes."""

    def parse(text: str) -> str:
        check(text)
        return text

    return parse


def _kind(text: str) -> str:
    if text.strip() not in KINDS:
        raise Refused(f"there is no graph kind {quoted(text)}; {instead(text, KINDS)}")
    return text.strip()


def _devices(kernel: Kernel, simulated: bool) -> tuple[str, ...]:
    """What the form offers; a command line takes any."""
    if not kernel.ranked or simulated:
        return ()
    if kernel.backend == "cpu":
        return ("", *(",".join(["cpu"] * count) for count in (2, 3, 4)))
    return ("", ALL, *(",".join(map(str, range(count))) for count in (2, 3, 4, 8)))


_WHICH = (
    "the algorithm to run; `fwtui kernels` lists them; auto: the fastest one measured here (`fwtui tune`), or the best known; "
    "./mine.py: your own (`fwtui new` writes one)"
)

_KINDS = (
    "how vertices are linked: random, by the density; grid: to their neighbours in a square; road: streets with gaps, and "
    "motorways; small-world: a ring with shortcuts; power-law: few have many edges"
)

FIELDS: tuple[Field, ...] = (
    Field("kernel", "Kernel", _WHICH, _kernel, "ID", "k", lambda k, s: (*known_kernels(), AUTO.id)),
    Field(
        "n",
        "n",
        f"vertices of the graph, 1 to {Kernel.max_n}, or on several devices {MAX_N}",
        vertices(MAX_N),
        "N",
        "n",
    ),
    Field("file", "Graph file", f"read the graph from a file instead: {read_help()}", str, "PATH"),
    Field("kind", "Graph kind", _KINDS, _kind, "KIND", choices=lambda k, s: KINDS),
    Field(
        *("density", "Density", "probability of each edge of a random graph: 0..1 or a percentage like 30%"),
        *(_share("density", 1), "P", "d"),
    ),
    Field("weights", "Weights", "range of edge weights, like 1..16", _weights, "LOW..HIGH"),
    _flag("real", "Real weights", "real weights (multiples of 1/256) instead of integers"),
    Field(
        "negative",
        "Negative",
        "share of negative edges (no negative cycles), 0..0.45",
        _share("negative share", MAX_NEGATIVE_SHARE),
        "SHARE",
    ),
    _flag("connected", "Connected", "force strong connectivity by the edges i -> i+1"),
    _flag("exact", "Exact count", "exactly density x n(n-1) edges instead of a random draw for each"),
    Field("seed", "Seed", "same seed, same graph, on every machine", _number("seed", 0, MAX_SEED), "SEED", "s"),
    Field("dtype", "Type", "number type of the distances", str, "TYPE", choices=lambda k, s: k.dtypes),
    Field(
        *("tile", "Tile", "side of a square tile", _number("tile", 1, 1024), "SIDE", "t"),
        lambda k, s: tuple(map(str, k.tiles_for(s))),
    ),
    Field(
        *("launch", "Launch", "eager: launch by launch; graph: captured once as a CUDA graph", str, "MODE"),
        choices=lambda k, s: ("eager",) if s else k.launch_modes,
    ),
    Field(
        *("memory", "Memory", "where the matrix lives while the kernel runs", str, "KIND"),
        choices=lambda k, s: ("device",) if s else k.memories,
    ),
    Field("repeats", "Repeats", f"number of timed repetitions; {UNTIL_STABLE}: until stable", _repeats, "COUNT", "r"),
    Field(
        "budget",
        "Budget",
        "time budget for the repetitions, in seconds",
        _number("budget", 0.1, 3600, whole=False),
        "SECONDS",
    ),
    Field(
        *("verify", "Verify", "auto, full (SciPy), sample (Dijkstra from some sources) or off", str, "HOW"),
        choices=lambda k, s: ("auto", "full", "sample", "off"),
    ),
    Field("device", "Device", "of GPU kernels: auto, a GPU's number, or simulator", _checked(DeviceId.parse), "DEVICE"),
    Field(
        *("devices", "Devices", "several, each with a share of the graph: GPUs like 0,1; cpu,cpu; all: every GPU"),
        *(_checked(places), "LIST"),
        choices=_devices,
    ),
)
BY_NAME = {field.name: field for field in FIELDS}
