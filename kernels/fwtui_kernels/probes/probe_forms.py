"""The forms of a relaxation, c = min(c, a + b), with a measured peak rate. Pure data."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui_kernels import forms
from fwtui_kernels.forms import RelaxForm

EDITION = 4  # version of the microbenchmarks; peak rates of another version are ignored
FORMS = (
    *forms.FORMS,
    RelaxForm("float32", "float32", "add + minimum", ("float32",), backend="cpu"),
    RelaxForm("float64", "float64", "add + minimum", ("float64",), backend="cpu"),
    RelaxForm("int32", "int32", "add + minimum", ("int32",), backend="cpu"),
    RelaxForm("int16", "int16", "add + minimum", ("int16",), backend="cpu"),
)


def forms_of(backend: str, capability: tuple[int, int] | None = None) -> Sequence[RelaxForm]:
    """Return the forms that can be measured on that backend."""
    return [f for f in FORMS if f.backend == backend and f.capability <= (capability or (0, 0))]


def right_for(backend: str, dtype: str, nonnegative: bool) -> Sequence[RelaxForm]:
    """Return the forms that compute correct distances for that data type and sign."""
    return [f for f in FORMS if f.backend == backend and dtype in f.dtypes and (nonnegative or not f.nonnegative)]
