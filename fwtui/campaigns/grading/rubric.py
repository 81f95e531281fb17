"""What submissions are graded by: a small TOML file, whose every mistake is one sentence with the key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct

from fwtui.common.errors import Refused, why
from fwtui.common.small_file import beginning, toml
from fwtui.common.text import clean, instead, quoted
from fwtui.experiment.experiment import MAX_NEGATIVE_SHARE, MAX_SEED, MAX_WEIGHT, Experiment, changed, settle
from fwtui.experiment.generate import recipe_for
from fwtui.stream.grades import SubmissionLimits
from fwtui_kernels import registry
from fwtui_kernels.plan import DTYPES

EXAMPLE = Path(__file__).with_name("example.toml")
LARGEST_FILE = 2**20  # bytes
LARGEST, LARGEST_TIMED = 2048, 16384  # vertices: every distance of the first is compared with SciPy's
MOST_GRAPHS = 500
TEXT = Annotated[str, Meta(min_length=1, max_length=80, description="a text of 1 to 80 characters")]
POINTS = Annotated[float, Meta(ge=0, le=10000, description="a number from 0 to 10000")]
SHARE = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
WEIGHT = Annotated[int, Meta(ge=-MAX_WEIGHT, le=MAX_WEIGHT, description=f"a whole number from -{MAX_WEIGHT} to {MAX_WEIGHT}")]
SIZE = Annotated[int, Meta(ge=1, le=LARGEST)] | Annotated[str, Meta(pattern=r"^\d{1,4}\.\.\d{1,4}$")]
SIZES = Annotated[
    tuple[SIZE, ...],
    Meta(min_length=1, description=f'a list of whole numbers from 1 to {LARGEST}, or of ranges such as "100..300" to draw from'),
]
SEED = Annotated[int, Meta(ge=0, le=MAX_SEED)]
SEEDS = (
    Annotated[tuple[SEED, ...], Meta(min_length=1, description="a list of whole numbers from 0 up, or how many are drawn")]
    | Annotated[int, Meta(ge=1, le=100)]
)
BACKEND = Annotated[str, Meta(pattern="^(cpu|cuda)$", description="cpu or cuda")]
YES_NO = Annotated[bool, Meta(description="true or false")]
NEGATIVE = Annotated[float, Meta(ge=0, le=MAX_NEGATIVE_SHARE, description=f"a number from 0 to {MAX_NEGATIVE_SHARE}")]
DTYPE = Annotated[str, Meta(pattern=f"^({'|'.join(DTYPES)})$", description=f"one of {', '.join(DTYPES)}")]
TIMED = Annotated[int, Meta(ge=64, le=LARGEST_TIMED, description=f"a whole number from 64 to {LARGEST_TIMED}")]
RUNG = Annotated[str, Meta(pattern=f"^({'|'.join(registry())})$", description="a rung that `fwtui kernels` lists, such as naive")]
RATIO = Annotated[float, Meta(ge=0.001, le=100000, description="a number from 0.001 to 100000")]
T = TypeVar("T", bound=Struct)


class GraphKind(Struct, frozen=True, kw_only=True):
    """Graphs that share their points: every size with every seed."""

    name: TEXT
    points: POINTS
    n: SIZES
    seeds: SEEDS
    density: SHARE = 0.3
    low: WEIGHT = 1
    high: WEIGHT = 16
    negative: NEGATIVE = 0.0
    unreachable: YES_NO = False
    dtype: DTYPE = "float32"

    def draw(self, random: Random) -> GraphKind:
        """With a size from each range and seeds from that number of them."""
        sizes = tuple(random.randint(*map(int, n.split(".."))) if isinstance(n, str) else n for n in self.n)
        seeds = tuple(random.randrange(MAX_SEED) for _ in range(self.seeds)) if isinstance(self.seeds, int) else self.seeds
        return msgspec.structs.replace(self, n=sizes, seeds=seeds)

    def graphs(self) -> tuple[Experiment, ...]:
        """Of a kind that was drawn."""
        facts = msgspec.structs.asdict(self)
        for word in ("name", "points", "n", "seeds", "unreachable"):
            del facts[word]
        usual = Experiment(kernel="naive", connected=not self.unreachable, **facts)
        assert not isinstance(self.seeds, int)
        return tuple(changed(usual, n=n, seed=seed) for n in self.n for seed in self.seeds)


class Timing(Struct, frozen=True, kw_only=True):
    """Points for the time of a pass as a multiple of a rung's: all up to `full`, none from `zero` on."""

    points: POINTS
    n: TIMED
    against: RUNG
    full: RATIO
    zero: RATIO
    density: SHARE = 0.3
    dtype: DTYPE = "float32"

    def graph(self, seed: int) -> Experiment:
        """The first graph; those of the other passes are drawn with its seed."""
        return Experiment(kernel=self.against, n=self.n, density=self.density, dtype=self.dtype, seed=seed)


class Rubric(Struct, frozen=True, kw_only=True):
    """All of the file; `needed` is the share of the points with which a submission passes."""

    kinds: tuple[GraphKind, ...]
    timing: Timing | None
    limits: SubmissionLimits
    needed: float
    require: str = ""  # the backend that a submission must have
    seed: int = 0  # of what was drawn

    def draw(self, seed: int) -> Rubric:
        """With the sizes and seeds that are left open drawn, the same ones for the same seed."""
        random = Random(seed)
        return msgspec.structs.replace(self, kinds=tuple(kind.draw(random) for kind in self.kinds), seed=seed)


class _Top(Struct, frozen=True):
    """The keys that stand above every table."""

    needed: SHARE = msgspec.field(default=0.5, name="pass")
    require: BACKEND | None = None
    limits: dict[str, Any] = {}
    graphs: Annotated[list[dict[str, Any]], Meta(description="one or more tables [[graphs]]")] = []
    time: Annotated[dict[str, Any] | None, Meta(description="a table [time]")] = None


def read(path: Path) -> Rubric:
    """The rubric in that file. Raises Refused."""
    file = clean(path.name)
    try:
        data = beginning(path, LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise Refused(f"{file} is larger than {LARGEST_FILE // 1024} KiB; `fwtui grade --example-rubric` shows what it says")
        return rubric(data.decode(), file)
    except OSError as error:
        example = "`fwtui grade --example-rubric > rubric.toml` writes one"
        raise Refused(f"the rubric {quoted(str(path))} cannot be read: {why(error)}; {example}") from None
    except UnicodeDecodeError:
        raise Refused(f"{file} is not UTF-8 text; save it as such") from None


def rubric(text: str, file: str) -> Rubric:
    """The rubric that a text says. Raises Refused, with the file's name."""
    try:
        data = toml(text)
    except ValueError as error:
        raise Refused(f"{file} is not TOML: {clean(str(error))}; correct that line") from None
    top = _taken(_Top, data, file, "")
    kinds = tuple(_taken(GraphKind, table, file, f"graphs[{number}].") for number, table in enumerate(top.graphs, 1))
    if not kinds:
        raise Refused(f"{file} has no graphs; write one or more tables [[graphs]] with name, points, n and seeds")
    if len({kind.name for kind in kinds}) < len(kinds):
        raise Refused(f"{file}: two tables [[graphs]] have the same name; give each its own")
    for number, kind in enumerate(kinds, 1):
        _check(kind, f"{file}: graphs[{number}] ({quoted(kind.name)})")
    if (count := sum(len(kind.draw(Random(0)).graphs()) for kind in kinds)) > MOST_GRAPHS:
        raise Refused(f"{file} asks for {count} graphs; at most {MOST_GRAPHS}, so take fewer sizes or seeds")
    timing = _taken(Timing, top.time, file, "time.") if top.time is not None else None
    if timing is not None and not timing.full < timing.zero:
        raise Refused(f"{file}: time.zero is {timing.zero:g}; it must be more than time.full, which is {timing.full:g}")
    if timing is not None and timing.dtype not in registry()[timing.against].dtypes:
        offered = ", ".join(registry()[timing.against].dtypes)
        raise Refused(f"{file}: time.dtype is {timing.dtype}; {timing.against} takes {offered}")
    if not sum(kind.points for kind in kinds) + (timing.points if timing is not None else 0):
        raise Refused(f"{file} has no points to give; say points = 10 where there are some")
    limits = _taken(SubmissionLimits, top.limits, file, "limits.")
    return Rubric(kinds=kinds, timing=timing, limits=limits, needed=top.needed, require=top.require or "")


def _check(kind: GraphKind, where: str) -> None:
    """Raises Refused if no such graphs exist."""
    if kind.low > kind.high:
        raise Refused(f"{where}: low is {kind.low}; it must be at most high, which is {kind.high}")
    for low, high in (map(int, n.split("..")) for n in kind.n if isinstance(n, str)):
        if not 1 <= low <= high <= LARGEST:
            raise Refused(f"{where}: n has {low}..{high}; write a range from a smaller to a larger number, within 1..{LARGEST}")
    for graph in kind.draw(Random(0)).graphs():
        try:
            recipe_for(settle(graph))
        except Refused as refusal:
            raise Refused(f"{where}: {refusal}") from None


def _taken(kind: type[T], table: dict[str, Any], file: str, where: str) -> T:
    """The table as that type; a sentence for the first key that is not as it must be. Raises Refused."""
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key in table:
        if key not in fields:
            raise Refused(f"{file}: there is no key {quoted(where + key)}; {instead(key, fields)}")
    for key, field in fields.items():
        allowed = _allowed(hints[field.name])
        if key not in table:
            if field.required:
                raise Refused(f"{file}: {where}{key} is missing; it is {allowed}")
            continue
        try:
            msgspec.convert(table[key], hints[field.name])
        except msgspec.ValidationError:
            text = str(table[key]).lower() if isinstance(table[key], bool) else str(table[key])
            raise Refused(f"{file}: {where}{key} is {quoted(text)}; it must be {allowed}") from None
    return msgspec.convert(table, kind)


def _allowed(hint: Any) -> str:
    """What a key may be, in words: those of its type, or of the first that has some among several."""
    words = (meta.description for part in (hint, *get_args(hint)) for meta in get_args(part) if isinstance(meta, Meta))
    return next(filter(None, words), "a table")
