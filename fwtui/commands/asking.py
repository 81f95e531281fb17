"""Experiments from the command line, made from the same fields as the form."""

from __future__ import annotations

import argparse
from itertools import product

from fwtui.errors import Refused
from fwtui.experiment import Experiment, changed, defaults, kernel_named
from fwtui.fields import FIELDS, Field
from kernels import registry

SEVERAL = ("kernel", "n", "density", "dtype", "tile", "launch")  # a comma asks for one run of each


def add_fields(parser: argparse.ArgumentParser) -> None:
    """A flag for every field of an experiment and for every option that a kernel has of its own."""
    group = parser.add_argument_group("experiment", "the same choices as the dashboard's form")
    for field in FIELDS:
        flags = [f"--{field.name}", *([f"-{field.short}"] if field.short else [])]
        several = "; several with commas" if field.name in SEVERAL else ""
        group.add_argument(
            *flags, metavar=field.metavar, help=f"{field.help}{several}".replace("%", "%%"), dest=f"field_{field.name}"
        )
    for name, about in kernel_options().items():
        group.add_argument(f"--{name}", metavar="COUNT", help=about, dest=f"option_{name}")


def kernel_options() -> dict[str, str]:
    """Every kernel's own options: name -> help that names its kernels and values."""
    told: dict[str, list[str]] = {}
    for kernel in registry().values():
        for option in kernel.options:
            values = ", ".join(map(str, option.values))
            told.setdefault(option.name, []).append(f"{kernel.id}: {option.help} ({values})")
    return {name: "; ".join(lines) for name, lines in told.items()}


def experiments(given: argparse.Namespace, gpu: bool) -> list[Experiment]:
    """One experiment for every combination of what was asked; what was not asked is this machine's default."""
    asked = {f: getattr(given, f"field_{f.name}") for f in FIELDS}
    choices = [
        [(field, text) for text in (value.split(",") if field.name in SEVERAL else [value])]
        for field, value in asked.items()
        if value is not None
    ]
    return [_experiment(combination, given, gpu) for combination in product(*choices)]


def _experiment(combination: tuple[tuple[Field, str], ...], given: argparse.Namespace, gpu: bool) -> Experiment:
    base = defaults(gpu)
    changes: dict[str, object] = {}
    for field, text in combination:
        changes |= field.read(text.strip())
    kernel = kernel_named(str(changes.get("kernel", base.kernel)))
    if kernel.id != base.kernel or changes.get("device") == "simulator":
        # another kernel's (or a real GPU's) tile, options and launch mode are not this one's defaults
        base = changed(base, tile=0, options={}, launch="")
        if kernel.backend == "cpu":
            base = changed(base, n=min(base.n, defaults(False).n))
    options: dict[str, int] = {}
    for name in kernel_options():
        text = getattr(given, f"option_{name}")
        if text is not None:
            try:
                options[name] = int(text)
            except ValueError:
                raise Refused(f"{name} {text!r} is not a whole number; `fwtui kernels` lists what {kernel.id} offers") from None
    return changed(base, **changes, options={**base.options, **options})
