"""The ways to write one relaxation, c = min(c, a + b), that a limit is measured for. Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernels.forms import HOPPER

EDITION = 2  # of the probes; a limit measured by another one is not believed


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a relaxation, and what it holds for."""

    key: str
    backend: str  # "cpu" | "cuda"
    title: str
    instructions: str  # on the newest hardware that it was written for
    dtypes: tuple[str, ...]  # of distances that may be computed in this way
    nonnegative: bool = False  # right for weights >= 0 alone
    capability: tuple[int, int] = (0, 0)  # least compute capability
    number: int = -1  # on a GPU: in kernels.forms.FORMS, which the kernels' own inner loop is made from


_MIXED_PAIRS = "VIADDMNMX.S16x2 | 2 IMAD + VIMNMX3"
# where there is no packed form, 16-bit distances are computed in 32-bit registers
FORMS: tuple[Form, ...] = (
    Form("float32", "cuda", "float32", "FADD + FMNMX", ("float32",), number=0),
    Form("float32-two", "cuda", "float32, two k at once", "2 FADD + VIMNMX3", ("float32",), nonnegative=True, number=1),
    Form("int32", "cuda", "int32", "VIADDMNMX", ("int32", "int16"), number=2),
    Form("int32-mixed", "cuda", "int32, a third by multiply-add", "VIADDMNMX | 2 IMAD + VIMNMX3", ("int32", "int16"), number=3),
    Form("int16", "cuda", "16 bit, packed", "VIADDMNMX.S16x2", ("int16",), True, HOPPER, 4),
    Form("int16-mixed", "cuda", "16 bit, a third by multiply-add", _MIXED_PAIRS, ("int16",), True, HOPPER, 5),
    Form("float32", "cpu", "float32", "add + minimum", ("float32",)),
    Form("float32-bits", "cpu", "float32, minimum of the bits", "add + integer minimum", ("float32",), nonnegative=True),
    Form("int32", "cpu", "int32", "add + minimum", ("int32",)),
    Form("int16", "cpu", "int16", "add + minimum", ("int16",)),
)


def forms_of(backend: str, capability: tuple[int, int] | None = None) -> Sequence[Form]:
    """The forms that can be measured there."""
    return [f for f in FORMS if f.backend == backend and f.capability <= (capability or (0, 0))]


def right_for(backend: str, dtype: str, nonnegative: bool) -> Sequence[Form]:
    """The forms that give right distances of that type and sign, whichever of them a kernel uses."""
    return [f for f in FORMS if f.backend == backend and dtype in f.dtypes and (nonnegative or not f.nonnegative)]
