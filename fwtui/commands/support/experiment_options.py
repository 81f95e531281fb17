"""Experiments from the command line, with the same fields as the form."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from fwtui.commands.support.user_kernel_options import add_trust_option, parse_kernel_options, register_kernels
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.experiment.experiment import Experiment, Settled, changed, defaults, for_kernel, kernel_named
from fwtui.experiment.fields import FIELDS, YES_NO, Field, default_text
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.graphs.file_options import FileOptions
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import Option

SEVERAL = ("kernel", "n", "kind", "density", "dtype", "tile", "launch")  # fields that take several values, separated by commas
GENERATED = ("n", "kind", "density", "weights", "real", "negative", "connected", "exact", "seed")  # fields of a generated graph
GRAPH = (*GENERATED, "file", *FileOptions._fields, "dtype")  # fields that decide the input

MAX_NAMED = 2  # kernels in the heading of a group of options


def add_experiment_options(
    parser: argparse.ArgumentParser,
    only: Container[str] | None = None,
    several: Container[str] = SEVERAL,
    helps: Mapping[str, str] = {},
) -> None:
    """Add an option for every field of an experiment and for every kernel option, or only for the fields `only`.

    `helps` replaces the help of some fields.
    """
    group = parser.add_argument_group("experiment", "the same choices as the dashboard's form")
    for field in (field for field in FIELDS if only is None or field.name in only):
        flags = [f"--{field.name.replace('_', '-')}", *([f"-{field.short}"] if field.short else [])]
        about = helps.get(field.name, field.help)
        about += "; several, separated by commas" if field.name in several and only is None else ""
        about += f" (default: {default})" if (default := default_text(field)) else ""
        bare: dict[str, Any] = {"nargs": "?", "const": "yes"} if field.metavar == YES_NO else {}
        group.add_argument(*flags, metavar=field.metavar, help=about.replace("%", "%%"), dest=f"field_{field.name}", **bare)
    if only is None:
        about = "option of your kernel; repeatable"
        group.add_argument("--option", metavar="NAME=VALUE", action="append", default=[], help=about)
        groups: dict[tuple[str, ...], dict[str, list[tuple[str, Option]]]] = {}
        for name, having in kernel_options().items():
            groups.setdefault(tuple(kernel for kernel, _ in having), {})[name] = having
        for kernels, options in groups.items():
            many = len(kernels) > MAX_NAMED
            title = f"options of {len(kernels)} kernels" if many else f"options of {' and '.join(kernels)}"
            group = parser.add_argument_group(title, ", ".join(kernels) if many else None)
            for name, having in options.items():
                group.add_argument(f"--{name}", metavar="COUNT", help=_describe_option(having), dest=f"option_{name}")
        add_trust_option(parser)


def _describe_option(having: Sequence[tuple[str, Option]]) -> str:
    """Return the help of an option: one text if it is the same for all kernels, else one per kernel."""
    values = {_list_values(option) for _, option in having}
    shortest = min((option.help for _, option in having), key=len)
    if len(values) == 1 and all(option.help.startswith(shortest) for _, option in having):  # some kernels extend the help
        return f"{shortest} ({_list_values(having[0][1])}; default: {_default(having[0][1])})"
    return "; ".join(f"{one}: {option.help} ({_list_values(option)}; default: {_default(option)})" for one, option in having)


def _list_values(option: Option) -> str:
    """Return the values of an option, by name if they have names; the numbers are accepted too."""
    return ", ".join(option.value_names or map(str, option.values))


def _default(option: Option) -> str:
    return next((name for name, value in option.value_names.items() if value == option.default), str(option.default))


def kernel_options() -> dict[str, list[tuple[str, Option]]]:
    """Return the options of all kernels by name, each with the kernels that have it."""
    found: dict[str, list[tuple[str, Option]]] = {}
    for kernel in known_kernels().values():
        for option in kernel.options:
            found.setdefault(option.name, []).append((kernel.id, option))
    return found


def parse_experiments(args: argparse.Namespace, gpu: bool) -> list[Experiment]:
    """Return an experiment for every combination of values, with the defaults of this machine.

    Each kernel gets only the options that it supports. Raises Refused for an option that none of them supports.
    """
    register_requested(args)
    combinations = [_experiment(combination, args, gpu) for combination in product(*_choices(args))]
    kernels = list(dict.fromkeys(e.kernel for e in combinations))
    offered = {option.name for kernel in kernels for option in kernel_named(kernel).options}
    for name in _options(args):
        if name not in offered:
            have = "have" if len(kernels) > 1 else "has"
            raise Refused(f"{' and '.join(kernels)} {have} no option {name!r}; `fwtui kernels` lists the options of each kernel")
    return combinations


def check_device(args: argparse.Namespace, kernels: Iterable[str]) -> None:
    """Raise Refused for a device if all kernels run on the CPU."""
    device, names = args.field_device or "auto", list(dict.fromkeys(kernels))
    if device != "auto" and all(kernel_named(name).backend == "cpu" for name in names):
        runs = "run" if len(names) > 1 else "runs"
        way = "omit --device, or choose a GPU kernel"
        raise Refused(f"{' and '.join(names)} {runs} on the CPU, which has no device {device}; {way}")


def register_requested(args: argparse.Namespace) -> None:
    """Register the requested user kernels and their options. Raises Refused."""
    if hasattr(args, "trust"):
        args.field_kernel = register_kernels(args.field_kernel, args.trust)
        parse_kernel_options(args, kernel_options())


def _options(args: argparse.Namespace) -> dict[str, str]:
    return {name: text for name in kernel_options() if (text := getattr(args, f"option_{name}", None)) is not None}


def experiments_of_every_kernel(
    args: argparse.Namespace, gpu: bool, settled: Callable[[Experiment], Settled]
) -> tuple[list[Settled], list[tuple[str, str]]]:
    """Return the experiment for every kernel that supports it, and (kernel, reason) for the other kernels.

    `settled` raises Refused if an experiment cannot run here. Each kernel gets the first requested data type that it supports,
    by default its first one, and the options that it supports.
    """
    if args.field_kernel is not None:
        raise Refused("--all and --kernel cannot be combined; pass only one")
    fits: list[Settled] = []
    left_out: list[tuple[str, str]] = []
    parse_kernel_options(args, kernel_options())
    choices = [choice for choice in _choices(args) if choice[0][0].name != "dtype"]
    types = [text.strip() for text in args.field_dtype.split(",")] if args.field_dtype is not None else []
    for combination, kernel in product(product(*choices), registry().values()):
        dtype = next((t for t in types or (Experiment().dtype, *kernel.dtypes) if t in kernel.dtypes), None)
        try:
            if dtype is None:
                raise Refused(f"dtype {' or '.join(types)} is not supported by {kernel.id}; it has {', '.join(kernel.dtypes)}")
            experiment = _experiment(combination, args, gpu, every={"kernel": kernel.id, "dtype": dtype})
            fits.append(settled(experiment))
        except Refused as refusal:
            left_out.append((kernel.id, str(refusal)))
    return fits, left_out


def check_one_graph(names: Sequence[str]) -> None:
    """Raise Refused if these fields request both a file and a generated graph."""
    generated = next((name for name in names if name in GENERATED), None)
    if "file" in names and generated is not None:
        raise Refused(f"--file and --{generated}, which is for generated graphs, cannot be combined; pass only one")


def _choices(args: argparse.Namespace) -> list[list[tuple[Field, str]]]:
    texts = {field: text for field in FIELDS if (text := getattr(args, f"field_{field.name}", None)) is not None}
    check_one_graph([field.name for field in texts])
    return [[(f, word) for word in (text.split(",") if f.name in SEVERAL else [text])] for f, text in texts.items()]


def _experiment(
    combination: Iterable[tuple[Field, str]],
    args: argparse.Namespace,
    gpu: bool,
    every: Mapping[str, object] | None = None,
) -> Experiment:
    changes = dict(every or {})
    for field, text in combination:
        changes |= field.read(text.strip())
    base = defaults(gpu)
    kernel = kernel_named(str(changes.get("kernel", AUTO.id if changes.get("devices") else base.kernel)))
    if every is None:  # otherwise all kernels run on one graph
        most = min(kernel.max_n, defaults(False).n) if kernel.backend == "cpu" else kernel.max_n
        base = changed(base, n=min(base.n, most))
    base = for_kernel(base, kernel)
    reading = next((name for name in FileOptions._fields if name in changes), None)
    if reading is not None and not changes.get("file"):
        raise Refused(f"--{reading.replace('_', '-')} is for graph files; pass --file PATH too, or omit it")
    options: dict[str, int] = {}
    for name, text in _options(args).items():
        for option in (option for option in kernel.options if option.name == name):
            value = option.read(text)
            if value is None:
                raise Refused(f"{name} {quoted(text)} is not supported by {kernel.id}; choose one of {_list_values(option)}")
            options[name] = value
    return changed(base, **changes, options=options)
