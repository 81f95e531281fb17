"""What a user may ask for: one frozen record, and one list of fields that the form and the command line are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from fwtui.errors import Refused
from kernels import registry
from kernels.plan import Kernel, Shape

SIMULATOR_MAX_N = 24  # Numba's simulator runs every thread in Python
MAX_SEED = 2**63 - 1
MAX_NEGATIVE_SHARE = 0.45  # potentials never reach one half
GRID = 256  # real weights are multiples of 1/256, so that float32 sums are exact
MAX_WEIGHT = 2**16

_Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Float = Annotated[float, Meta(ge=-1e15, le=1e15)]


class Experiment(Struct, frozen=True, kw_only=True):
    """One thing to run. Zero in `tile` and `repeats` means: the kernel's own tile, and until stable."""

    kernel: str = "tiled-cpu"
    n: _Int = 512
    file: str = ""
    density: _Float = 0.3
    low: _Float = 1
    high: _Float = 16
    real: bool = False
    negative: _Float = 0.0
    connected: bool = False
    exact: bool = False
    seed: _Int = 7
    dtype: str = "float32"
    tile: _Int = 0
    options: dict[str, _Int] = {}
    launch: str = ""
    memory: str = "device"
    repeats: _Int = 0
    budget: _Float = 5.0
    verify: str = "auto"
    device: str = "auto"

    def shape(self, n: int, nonnegative: bool = True) -> Shape:
        """The kernel's shape for a graph of n vertices (a file's n is known only once it is read)."""
        return Shape(
            n=n,
            tile=self.tile or 1,
            dtype=self.dtype,
            memory=self.memory,
            nonnegative=nonnegative,
            options=tuple(sorted(self.options.items())),
        )

    @property
    def graph(self) -> tuple[object, ...]:
        """What decides the input graph, and nothing else: equal keys, equal bytes."""
        if self.file:
            return (self.file,)
        return (self.n, self.density, self.low, self.high, self.real, self.negative, self.connected, self.exact, self.seed)


@dataclass(frozen=True, slots=True)
class Field:
    """One thing a user can set: how it is called, read from text, and written as text."""

    name: str
    title: str
    help: str
    read: Callable[[str], dict[str, Any]]  # text -> changes to the Experiment; raises Refused
    show: Callable[[Experiment], str]
    choices: Callable[[Kernel, bool], tuple[str, ...]] | None = None  # (kernel, simulated); None: free text
    short: str = ""
    metavar: str = "VALUE"


def _number(name: str, title: str, low: float, high: float, whole: bool = True) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        try:
            value = int(text.replace("_", "")) if whole else float(text)
        except ValueError:
            raise Refused(f"{title} {text!r} is not a {'whole ' if whole else ''}number; give {low} to {high}") from None
        if not low <= value <= high:  # a NaN fails too
            raise Refused(f"{title} {text} is outside {low} to {high}; choose a value in between")
        return {name: value}

    return read


def _share(name: str, title: str, most: float) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        plain = text.strip()
        try:
            value = float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)
        except ValueError:
            raise Refused(f"{title} {text!r} is not a share; give 0 to {most:g}, or a percentage like 30%") from None
        if not 0 <= value <= most:
            raise Refused(f"{title} {text} is outside 0 to {most:g}; give a share like 0.3 or a percentage like 30%")
        return {name: value}

    return read


def _weights(text: str) -> dict[str, Any]:
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError
        ends = float(low), float(high)
    except ValueError:
        raise Refused(f"weights {text!r} are not a range; give two numbers like 1..16") from None
    if not all(math.isfinite(x) and abs(x) <= MAX_WEIGHT for x in ends):
        raise Refused(f"weights {text} reach beyond {MAX_WEIGHT}; choose smaller ones")
    if ends[0] > ends[1]:
        raise Refused(f"weights {text} run backwards; write {high.strip()}..{low.strip()}")
    return {"low": ends[0], "high": ends[1]}


def _flag(name: str, title: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise Refused(f"{title} {text!r} is neither yes nor no; give one of them")
        return {name: text.lower() in ("yes", "true", "1")}

    return read


def _device(text: str) -> dict[str, Any]:
    # an ASCII number that int() takes, and not more GPUs than a machine can have
    if text not in ("auto", "simulator") and not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise Refused(f"device {text!r} is neither auto, simulator nor a GPU's number; `fwtui doctor` lists the GPUs")
    return {"device": text}


def _plain(number: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(number)) if number == int(number) else repr(float(number))


def _word(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: text}


def _kernel(text: str) -> dict[str, Any]:
    kernel_named(text)
    return {"kernel": text}


def _yes_no(kernel: Kernel, simulated: bool) -> tuple[str, ...]:
    return ("no", "yes")


FIELDS: tuple[Field, ...] = (
    Field(
        "kernel",
        "Kernel",
        "the algorithm to run; `fwtui kernels` lists them",
        _kernel,
        lambda e: e.kernel,
        lambda k, s: tuple(registry()),
        short="k",
        metavar="ID",
    ),
    Field(
        "n", "Vertices", "size of the graph, 1 to 65536", _number("n", "n", 1, 65536), lambda e: str(e.n), short="n", metavar="N"
    ),
    Field(
        "file",
        "Graph file",
        "read the graph from a DIMACS .gr or Matrix Market .mtx file instead",
        _word("file"),
        lambda e: e.file,
        metavar="PATH",
    ),
    Field(
        "density",
        "Density",
        "probability of each edge: 0..1 or a percentage like 30%",
        _share("density", "density", 1),
        lambda e: _plain(e.density),
        short="d",
        metavar="P",
    ),
    Field(
        "weights",
        "Weights",
        "range of edge weights, like 1..16",
        _weights,
        lambda e: f"{_plain(e.low)}..{_plain(e.high)}",
        metavar="LOW..HIGH",
    ),
    Field(
        "real",
        "Real weights",
        "real weights (multiples of 1/256) instead of integers",
        _flag("real", "real"),
        lambda e: "yes" if e.real else "no",
        _yes_no,
        metavar="YES|NO",
    ),
    Field(
        "negative",
        "Negative",
        "share of negative edges (no negative cycles), 0..0.45",
        _share("negative", "negative share", MAX_NEGATIVE_SHARE),
        lambda e: _plain(e.negative),
        metavar="SHARE",
    ),
    Field(
        "connected",
        "Connected",
        "force strong connectivity by the edges i -> i+1",
        _flag("connected", "connected"),
        lambda e: "yes" if e.connected else "no",
        _yes_no,
        metavar="YES|NO",
    ),
    Field(
        "exact",
        "Exact count",
        "exactly density x n(n-1) edges instead of a coin toss for each",
        _flag("exact", "exact"),
        lambda e: "yes" if e.exact else "no",
        _yes_no,
        metavar="YES|NO",
    ),
    Field(
        "seed",
        "Seed",
        "same seed, same graph, on every machine",
        _number("seed", "seed", 0, MAX_SEED),
        lambda e: str(e.seed),
        short="s",
        metavar="SEED",
    ),
    Field(
        "dtype", "Type", "number type of the distances", _word("dtype"), lambda e: e.dtype, lambda k, s: k.dtypes, metavar="TYPE"
    ),
    Field(
        "tile",
        "Tile",
        "side of a square tile",
        _number("tile", "tile", 1, 1024),
        lambda e: str(e.tile),
        lambda k, s: tuple(map(str, k.tiles_for(s))),
        short="t",
        metavar="SIDE",
    ),
    Field(
        "launch",
        "Launch",
        "eager: launch by launch; graph: captured once as a CUDA graph",
        _word("launch"),
        lambda e: e.launch,
        lambda k, s: ("eager",) if s else k.launch_modes,
        metavar="MODE",
    ),
    Field(
        "memory",
        "Memory",
        "where the matrix lives while the kernel runs",
        _word("memory"),
        lambda e: e.memory,
        lambda k, s: ("device",) if s else k.memories,
        metavar="KIND",
    ),
    Field(
        "repeats",
        "Repeats",
        "timed runs; 0 repeats until the median is stable",
        _number("repeats", "repeats", 0, 1000),
        lambda e: str(e.repeats),
        short="r",
        metavar="COUNT",
    ),
    Field(
        "budget",
        "Budget",
        "at most this many seconds of timed runs",
        _number("budget", "budget", 0.1, 3600, whole=False),
        lambda e: _plain(e.budget),
        metavar="SECONDS",
    ),
    Field(
        "verify",
        "Verify",
        "auto, full (SciPy), sample (Dijkstra from some sources) or off",
        _word("verify"),
        lambda e: e.verify,
        lambda k, s: ("auto", "full", "sample", "off"),
        metavar="HOW",
    ),
    Field("device", "Device", "auto, a GPU's number, or simulator", _device, lambda e: e.device, metavar="DEVICE"),
)


def kernel_named(name: str) -> Kernel:
    """The kernel with that id; Refused names the known ones."""
    try:
        return registry()[name]
    except KeyError:
        raise Refused(f"there is no kernel {name!r}; choose one of {', '.join(registry())}") from None


def changed(experiment: Experiment, **changes: Any) -> Experiment:
    """A copy with some fields replaced."""
    return msgspec.structs.replace(experiment, **changes)


def settle(experiment: Experiment, simulated: bool = False) -> Experiment:
    """The experiment with every default filled in for its kernel. Raises Refused where it cannot be run at all."""
    kernel = kernel_named(experiment.kernel)
    tiles = kernel.tiles_for(simulated)
    tile = experiment.tile
    if not tiles:
        tile = 0
    elif not tile:
        tile = kernel.default_tile if kernel.default_tile in tiles else tiles[-1]
    modes = ("eager",) if simulated else kernel.launch_modes
    options = {o.name: experiment.options.get(o.name, o.default) for o in kernel.options}
    settled = changed(experiment, tile=tile, options=options, launch=experiment.launch or modes[-1])
    _check_choices(settled, kernel, simulated, experiment.options)
    _check_numbers(settled, kernel, simulated)
    sentence = None if settled.file else kernel.refuses(settled.shape(settled.n))
    if sentence:
        raise Refused(sentence)
    return settled


def defaults(gpu: bool) -> Experiment:
    """What a newcomer runs first on this machine."""
    if gpu:
        return settle(Experiment(kernel="katz-kider", n=4096))
    return settle(Experiment(kernel="tiled-cpu", n=512))


def _check_choices(e: Experiment, kernel: Kernel, simulated: bool, given: Mapping[str, int]) -> None:
    tiles = kernel.tiles_for(simulated)
    where = " in the simulator" if simulated else ""
    modes = ("eager",) if simulated else kernel.launch_modes
    memories = ("device",) if simulated else kernel.memories
    for word, value, allowed in (
        ("dtype", e.dtype, kernel.dtypes),
        ("launch mode", e.launch, modes),
        ("memory", e.memory, memories),
        ("verify", e.verify, ("auto", "full", "sample", "off")),
        *((("tile", e.tile, tiles),) if tiles else ()),
        *((o.name, e.options[o.name], o.values) for o in kernel.options),
    ):
        if value not in allowed:
            raise Refused(f"{word} {value} is not offered by {kernel.id}{where}; choose {_one_of(allowed)}")
    for name in given:
        if name not in e.options:
            raise Refused(f"{kernel.id} has no option {name!r}; it has {_one_of([o.name for o in kernel.options])}")
    _device(e.device)


def _check_numbers(e: Experiment, kernel: Kernel, simulated: bool) -> None:
    most = SIMULATOR_MAX_N if simulated else kernel.max_n
    if not e.file and not 1 <= e.n <= most:
        if simulated and e.n > most:
            raise Refused(f"n = {e.n} is more than {most}, the limit of the simulator; choose a smaller n, or a CPU kernel")
        raise Refused(f"n = {e.n} is outside 1 to {most} for {kernel.id}; choose a value in between")
    for name, value, low, high in (
        ("density", e.density, 0, 1),
        ("negative share", e.negative, 0, MAX_NEGATIVE_SHARE),
        ("seed", e.seed, 0, MAX_SEED),
        ("repeats", e.repeats, 0, 1000),
        ("budget", e.budget, 0.1, 3600),
        ("least weight", e.low, -MAX_WEIGHT, e.high),
        ("greatest weight", e.high, e.low, MAX_WEIGHT),
    ):
        if not low <= value <= high:
            raise Refused(f"{name} {value:g} is outside {low:g} to {high:g}; choose a value in between")
    grid = GRID if e.real else 1
    for weight in (e.low, e.high):
        if weight * grid != int(weight * grid):
            unit = "a multiple of 1/256" if e.real else "a whole number"
            way = "round it" if e.real else "round it, or ask for real weights"
            raise Refused(f"weight {weight:g} is not {unit}; {way}")
    if e.dtype != "float32" and e.real:
        raise Refused(f"real weights do not fit {e.dtype}; choose float32, or integer weights")
    if e.dtype == "int16" and (e.negative or e.low < 0):
        raise Refused("int16 takes no negative weights; choose int32 or float32")
    if e.negative and e.low < 0:
        raise Refused(f"a negative share needs weights from 0 up, and {e.low:g} is below; start the range at 0 or more")
    if e.file and Path(e.file).suffix.lower() not in (".gr", ".mtx"):
        raise Refused(f"{Path(e.file).name!r} ends in neither .gr nor .mtx; convert it to DIMACS or Matrix Market")


def _one_of(values: Any) -> str:
    words = [str(v) for v in values]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "nothing"
