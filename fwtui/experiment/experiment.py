"""A request for a run, and its validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from fwtui.common.child_process import check_utf8
from fwtui.common.errors import Refused
from fwtui.common.text import excerpt, quoted, suggest
from fwtui.common.units import LARGEST
from fwtui.experiment.device import CPU, DeviceId, RankDevice, places
from fwtui.experiment.user_kernel_registry import code_of, is_path, known_kernels, name_of_file
from fwtui.graphs import GRID, file_options
from fwtui.graphs.file_options import FileOptions
from fwtui.graphs.formats import suffix_of
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import FLOATS, Kernel, Shape

SIMULATOR_MAX_N = 24  # the simulator runs every thread in Python
MAX_SEED = 2**63 - 1
FIRST_BUDGET = 2.0  # seconds of repetitions of a first run on a CPU, which a user waits for
MAX_NEGATIVE_SHARE = 0.45  # potentials never reach one half
MAX_WEIGHT = 2**16
KINDS = ("random", "grid", "road", "small-world", "power-law")  # kinds of generated graphs, numbered as in hashing.py
# fields of an Experiment: those that decide the graph, those that decide how distances are computed, and the rest
GENERATED = ("n", "kind", "density", "low", "high", "real", "negative", "connected", "exact", "seed")
HOW_COMPUTED = ("kernel", "code", "dtype", "tile", "options", "launch", "memory", "devices")
HOW_MEASURED = ("repeats", "budget", "verify", "device", "auto")
FULL_CHECK = {"cpu": 512, "cuda": 2048}  # largest n compared with SciPy cell by cell by default

_Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Float = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


class Experiment(Struct, frozen=True, kw_only=True):
    """A request for a run. Zero means the default tile of the kernel in `tile`, and until stable in `repeats`."""

    kernel: str = "tiled-cpu"
    code: str = ""  # fingerprint of a user kernel's files, without their paths
    n: _Int = 512
    file: str = ""
    weight: str = file_options.AUTO  # this and the next two: how the file is read
    no_edge: str = ""
    undirected: bool = False
    kind: str = "random"
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
    devices: str = ""  # one per process that shares the matrix, such as 0,1 or cpu,cpu; empty: only `device`
    auto: str = ""  # why auto chose this kernel (fwtui.machine.device_choice)

    def shape(self, n: int, nonnegative: bool = True) -> Shape:
        """Return the kernel's shape for a graph of n vertices (the n of a file is unknown until it is read)."""
        return Shape(
            n=n,
            tile=self.tile or 1,
            dtype=self.dtype,
            memory=self.memory,
            nonnegative=nonnegative,
            options=tuple(sorted(self.options.items())),
            ranks=max(1, len(self.places)),
        )

    @property
    def places(self) -> tuple[RankDevice, ...]:
        """The devices of its ranks; empty for a run on one device, and for invalid devices in a forged session."""
        try:
            return places(self.devices)
        except Refused:
            return ()

    @property
    def device_id(self) -> DeviceId:
        """The parsed field `device`; auto if it is invalid, as a forged session may have any text."""
        try:
            return DeviceId.parse(self.device)
        except Refused:
            return DeviceId()

    @property
    def without_path(self) -> Experiment:
        """Return the experiment as events store it: the file without its folder, because a path may identify its owner."""
        return changed(self, file=Path(self.file).name)

    @property
    def graph(self) -> tuple[object, ...]:
        """The key of the input graph: equal keys mean equal bytes (a file is identified by its name)."""
        return identity(self, ignoring=(*HOW_COMPUTED, *HOW_MEASURED, *(GENERATED if self.file else FileOptions._fields)))

    @property
    def reading(self) -> FileOptions:
        """The options for reading the graph file."""
        return FileOptions(self.weight, self.no_edge, self.undirected)


class Settled(Experiment, frozen=True, kw_only=True):
    """An experiment in which nothing is left open: its kernel, code, tile, options and launch mode, and where it runs.

    `settle` makes one from a user's experiment, and `as_it_ran` from a run's. Events hold plain experiments.
    """

    runs_on: DeviceId

    @property
    def gpus(self) -> list[DeviceId]:
        """The GPUs of this machine that the run uses."""
        here = [DeviceId("cuda", place.gpu) for place in self.places if place.gpu is not None and not place.host]
        return here or [self.runs_on] * (self.runs_on.backend == "cuda")

    def measured(self, *, repeats: int) -> Settled:
        """Return the experiment with another number of timed repetitions."""
        return msgspec.structs.replace(self, repeats=repeats)

    def check(self) -> None:
        """Check that every setting is chosen, because a worker chooses none. Raises Refused with the open setting."""
        whole = settle(self, self.runs_on.simulated)
        if left := [name for name in Experiment.__struct_fields__ if getattr(self, name) != getattr(whole, name)]:
            raise Refused(f"{_one_of(left)} was not resolved before the run started; run it again")


def kernel_named(name: str) -> Kernel:
    """Return the kernel with that id, or that of a registered file. Raises Refused with the available ids. Loads no file."""
    if name == AUTO.id:
        return AUTO
    kernels = known_kernels()
    try:
        return kernels[name_of_file(name) if is_path(name) else name]
    except KeyError:
        if is_path(name):
            raise Refused(f"there is no kernel {quoted(name)}; choose one of {', '.join((*kernels, AUTO.id))}") from None
        raise Refused(f"there is no kernel {quoted(name)}; {suggest(name, (*kernels, AUTO.id))}") from None


def changed(experiment: Experiment, **changes: Any) -> Experiment:
    """Return a copy with some fields replaced, which is not settled."""
    return Experiment(**_fields(experiment) | changes)


def for_kernel(experiment: Experiment, kernel: Kernel) -> Experiment:
    """Return the experiment for that kernel with open kernel settings; its first data type replaces an unsupported one."""
    dtype = experiment.dtype if experiment.dtype in kernel.dtypes else kernel.dtypes[0]
    return changed(experiment, kernel=kernel.id, code="", tile=0, options={}, launch="", dtype=dtype)


def as_it_ran(experiment: Experiment, device: DeviceId) -> Settled:
    """Return the settled experiment of a run on that device."""
    return Settled(**_fields(experiment), runs_on=device)


def _fields(experiment: Experiment) -> dict[str, Any]:
    fields = msgspec.structs.asdict(experiment)
    fields.pop("runs_on", None)  # only a Settled has it
    return fields


def identity(experiment: Experiment, ignoring: Sequence[str] = HOW_MEASURED) -> tuple[object, ...]:
    """Return a key that is equal for experiments that differ only in the ignored fields; it contains the name of a graph file."""
    plain = experiment.without_path if experiment.file else experiment
    values = [getattr(plain, name) for name in Experiment.__struct_fields__ if name not in ignoring]
    return tuple([tuple(sorted(value.items())) if isinstance(value, dict) else value for value in values])


def settle(experiment: Experiment, simulated: bool = False) -> Settled:
    """Return the experiment with every default of its kernel filled in. Raises Refused if it can never run.

    The result does not depend on this machine; fwtui.machine.device_choice makes the choices that do, such as that of `auto`.
    """
    kernel = kernel_named(experiment.kernel)
    if kernel is AUTO:
        raise Refused("kernel auto is resolved on the machine of the run; name a kernel")
    device, ranks = DeviceId.parse(experiment.device), places(experiment.devices)
    if kernel.backend != "cuda":
        runs_on = CPU
    elif simulated:
        runs_on = DeviceId("simulator")
    else:
        runs_on = DeviceId("cuda", ranks[0].gpu or 0) if ranks else device.on("cuda")
    default = kernel.tile_for(0 if experiment.file else experiment.n, simulated, experiment.dtype)
    tile = experiment.tile or default if default else 0
    modes = ("eager",) if simulated else kernel.launch_modes
    options = {o.name: experiment.options.get(o.name, o.default) for o in kernel.options}
    code = code_of(kernel.id)
    decided = {
        "code": code and (experiment.code or code),
        "tile": tile,
        "options": options,
        "launch": experiment.launch or modes[-1],
    }
    settled = Settled(**_fields(experiment) | decided, runs_on=runs_on)
    _check_choices(settled, kernel, simulated, experiment.options)
    _check_devices(settled, kernel, simulated, ranks)
    _check_numbers(settled, kernel, simulated)
    if not settled.file and (sentence := kernel.refuses(settled.shape(settled.n))):
        raise Refused(sentence)
    return settled


def defaults(gpu: bool) -> Experiment:
    """Return the default experiment of a machine with or without a GPU."""
    return Experiment(kernel="katz-kider", n=4096) if gpu else Experiment(kernel="tiled-cpu", n=512)


def first_experiment(gpu: bool) -> Experiment:
    """Return the first run of a new dashboard."""
    return changed(defaults(True), kernel="naive") if gpu else changed(defaults(False), kernel="serial", budget=FIRST_BUDGET)


def _check_choices(e: Experiment, kernel: Kernel, simulated: bool, options: Mapping[str, int]) -> None:
    tiles = kernel.tiles_for(simulated, e.dtype)
    where = " in the simulator" if simulated else ""
    modes = ("eager",) if simulated else kernel.launch_modes
    memories = ("device",) if simulated else kernel.memories
    for word, value, allowed in (
        ("dtype", e.dtype, kernel.dtypes),
        ("launch mode", e.launch, modes),
        ("memory", e.memory, memories),
        ("verify", e.verify, ("auto", "full", "sample", "off")),
        ("graph kind", e.kind, KINDS),
        *((("tile", e.tile, tiles),) if tiles else ()),
        *((o.name, e.options[o.name], o.values) for o in kernel.options),
    ):
        if value not in allowed:
            raise Refused(f"{word} {value} is not supported by {kernel.id}{where}; choose {_one_of(allowed)}")
    for name in options:
        if name not in e.options:
            raise Refused(f"{kernel.id} has no option {quoted(name)}; it has {_one_of([o.name for o in kernel.options])}")


def _check_devices(e: Experiment, kernel: Kernel, simulated: bool, ranks: Sequence[RankDevice]) -> None:
    if not e.devices:
        return
    if not kernel.ranked:
        ranked = _one_of([k.id for k in known_kernels().values() if k.ranked])
        raise Refused(f"{kernel.id} runs on one device, not on {excerpt(e.devices)}; choose {ranked}, or omit the devices")
    if simulated or e.device != "auto":
        raise Refused(f"devices {excerpt(e.devices)} and device {excerpt(e.device)} cannot be combined; pass only one")
    if ranks and (ranks[0].gpu is None) != (kernel.backend == "cpu"):
        other = next((k.id for k in known_kernels().values() if k.ranked and k.backend != kernel.backend), "another kernel")
        raise Refused(f"{kernel.id} does not run on {excerpt(e.devices)}; choose {other}, or other devices")


def _check_numbers(e: Experiment, kernel: Kernel, simulated: bool) -> None:
    most = SIMULATOR_MAX_N if simulated else kernel.max_n
    if not e.file and not 1 <= e.n <= most:
        if simulated and e.n > most:
            raise Refused(f"n = {e.n} is more than {most}, the limit of the simulator; choose a smaller n, or a CPU kernel")
        raise Refused(f"n = {e.n} is outside 1 to {most} for {kernel.id}; pass a value in this range")
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
            raise Refused(f"{name} {value:g} is outside {low:g} to {high:g}; pass a value in this range")
    grid = GRID if e.real else 1
    for weight in (e.low, e.high):
        if weight * grid != int(weight * grid):
            unit = "a multiple of 1/256" if e.real else "an integer"
            way = "round it" if e.real else "round it, or choose real weights"
            raise Refused(f"weight {weight:g} is not {unit}; {way}")
    if e.exact and e.kind != "random":
        raise Refused(f"an exact number of edges needs a random graph, not {e.kind}; omit one of them")
    if e.dtype not in FLOATS and e.real:
        raise Refused(f"real weights do not fit {e.dtype}; choose float32 or float64, or integer weights")
    if e.dtype == "int16" and (e.negative or e.low < 0):
        raise Refused("int16 takes no negative weights; choose int32 or float32")
    if e.negative and e.low < 0:
        raise Refused(f"a negative share needs non-negative weights, not {e.low:g}; start the range at 0 or more")
    check_utf8(e.file)
    if e.file:
        suffix_of(e.file)


def _one_of(values: Any) -> str:
    texts = [str(v) for v in values]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts) or "none"
