"""The instruction sequences for a relaxation, and the choice among them by data type, sign of the weights and GPU.

One relaxation is c = min(c, a + b). A fast kernel is bound by instruction issue, so a relaxation takes as few instructions as
possible. ptxas compiles the PTX below to:

    float32            FADD, FMNMX             2 instructions for 1 relaxation, on different pipes
    float32, two k     FADD, FADD, VIMNMX3     3 for 2: nonnegative floats are ordered like the integers with their bits
                                               and only integers have a minimum of three
    float64            DADD, DSETP, 2 FSEL     4 for 1: no instruction takes a minimum, so a comparison selects both halves
    int32              VIADDMNMX               1 for 1: add and minimum fused, new with Hopper (before: IADD3, IMNMX)
    int16 pairs        VIADDMNMX.S16x2         1 for 2
    mixed              IMAD, IMAD, VIMNMX3     3 for 2, but the multiplier, which otherwise idles, computes the sums (times 1):
                                               with a third of the cells both pipes are busy
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from fwtui_kernels.plan import Shape, Target

MIXED = 3  # a mixed form takes two k at once for `share` of every MIXED cells


class RelaxForm(NamedTuple):
    """An instruction sequence for a relaxation, and where it is valid."""

    key: str
    title: str
    instructions: str  # on the newest hardware supported
    dtypes: tuple[str, ...]  # data types of distances that it computes; the form's own type first
    one: str = ""  # PTX of one k: $0 = min($1 + $2, $3)
    two: str = ""  # PTX of two k: $0 = min($1 + $2, $3 + $4, $5); $6 is 1
    share: int = 0  # cells of every MIXED that take two k at once
    lanes: int = 1  # relaxations in one instruction
    nonnegative: bool = False  # valid only for weights >= 0
    capability: tuple[int, int] = (0, 0)  # minimum compute capability
    backend: str = "cuda"

    @property
    def dtype(self) -> str:
        return self.dtypes[0]


AMPERE, HOPPER = (8, 0), (9, 0)
# a run-time 1 (the depth of the grid), so that the compiler cannot remove the multiplication
ONE = "mov.u32 $0, %nctaid.z;"
_SUMS = "mad.lo.s32 t, $1, $6, $2; mad.lo.s32 u, $3, $6, $4;"
_TWO_FLOATS = (
    "{ .reg .f32 t, u; .reg .b32 x, y, z; add.f32 t, $1, $2; add.f32 u, $3, $4; mov.b32 x, t; mov.b32 y, u; mov.b32 z, $5; "
    "min.s32 x, x, y; min.s32 x, x, z; mov.b32 $0, x; }"
)
_TWO_INTS = f"{{ .reg .s32 t, u; {_SUMS} min.s32 t, t, u; min.s32 $0, t, $5; }}"
# lanes up to 0x3fff: their sums do not carry from one half into the other
_TWO_PAIRS = f"{{ .reg .b32 t, u; {_SUMS} min.u16x2 t, t, u; min.u16x2 $0, t, $5; }}"
_FLOAT = "{ .reg .f32 t; add.f32 t, $1, $2; min.f32 $0, t, $3; }"
# min.f64 takes more instructions, for NaN and the sign of 0
_DOUBLE = "{ .reg .f64 t; .reg .pred p; add.f64 t, $1, $2; setp.lt.f64 p, t, $3; selp.f64 $0, t, $3, p; }"
_INT = "{ .reg .s32 t; add.s32 t, $1, $2; min.s32 $0, t, $3; }"
_PAIR = "{ .reg .b32 t; add.s16x2 t, $1, $2; min.s16x2 $0, t, $3; }"

_INTS = ("int32", "int16")  # for int16 the fallback: without a packed form, 16-bit distances are computed in 32-bit registers
_pairs = partial(RelaxForm, dtypes=("int16",), one=_PAIR, lanes=2, nonnegative=True, capability=HOPPER)

# compiled code refers to them by index
FORMS = (
    RelaxForm("float32", "float32", "FADD + FMNMX", ("float32",), _FLOAT),
    RelaxForm(
        "float32-two", "float32, two k at once", "2 FADD + VIMNMX3", ("float32",), _FLOAT, _TWO_FLOATS, MIXED, nonnegative=True
    ),
    RelaxForm("int32", "int32", "VIADDMNMX", _INTS, _INT),
    RelaxForm("int32-mixed", "int32, a third by multiply-add", "VIADDMNMX | 2 IMAD + VIMNMX3", _INTS, _INT, _TWO_INTS, 1),
    _pairs("int16", "16 bit, packed", "VIADDMNMX.S16x2"),
    _pairs("int16-mixed", "16 bit, a third by multiply-add", "VIADDMNMX.S16x2 | 2 IMAD + VIMNMX3", two=_TWO_PAIRS, share=1),
    RelaxForm("float64", "float64", "DADD + DSETP + 2 FSEL", ("float64",), _DOUBLE),
)
PLAIN = {"float32": 0, "int32": 2, "int16": 4, "float64": 6}  # the form after each, except float64, has two k at once
AUTO, ONE_K, TWO_K = 0, 1, 2  # values of the option `form`


def lanes_of(dtype: str) -> int:
    """Return how many neighbouring cells a word holds."""
    return FORMS[PLAIN[dtype]].lanes


def cell_form(dtype: str) -> int:
    """Return the index into FORMS for words of one cell each."""
    return PLAIN["int32" if dtype == "int16" else dtype]


def form_of(shape: Shape, cc: tuple[int, int] | None) -> int:
    """Return the index into FORMS. AUTO takes two k at once if the sign of the weights and the GPU allow it."""
    plain = PLAIN[shape.dtype]
    option = dict(shape.options).get("form", AUTO)
    allowed = shape.dtype == "int32" or (shape.nonnegative and shape.dtype != "float64")
    # a GPU that lacks the three-way minimum needs four instructions for two k
    pays = cc is None or cc >= HOPPER
    return plain + (allowed and (option == TWO_K or (option == AUTO and pays)))


def refuses(shape: Shape) -> str | None:
    """Return an error sentence if two k at once would give wrong distances or take no fewer instructions."""
    if dict(shape.options).get("form", AUTO) != TWO_K:
        return None
    if shape.dtype == "float64":
        return "form 2 (two k at once) is not supported for float64; choose form 0 or 1"
    if shape.dtype == "float32" and not shape.nonnegative:
        return "form 2 needs non-negative weights for float32, because it compares distances as integers; choose form 0 or 1"
    return None


def lacks(shape: Shape, target: Target) -> str | None:
    """Return an error sentence if the GPU lacks asynchronous copies or packed 16-bit relaxations."""
    return too_old(shape, target, HOPPER if shape.dtype == "int16" else AMPERE)


def too_old(shape: Shape, target: Target, needed: tuple[int, int]) -> str | None:
    """Return an error sentence if the GPU has a lower compute capability than needed."""
    if target.cc is None or target.cc >= needed:
        return None
    fix = "choose float32 or int32" if target.cc >= AMPERE else "choose another kernel"
    return "{} needs compute capability {}.{}, but this GPU has {}.{}; {}".format(shape.dtype, *needed, *target.cc, fix)
