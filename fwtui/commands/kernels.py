"""List every kernel with its tiles, data types and options."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from fwtui.commands.support.printing import add_json_option, folded, table
from fwtui.common.exit_codes import OK
from fwtui.experiment.experiment import kernel_named
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "kernel ids to describe in full (default: a table of all kernels)"
    parser.add_argument("kernel", nargs="*", metavar="NAME", help=about)
    add_json_option(parser, "one JSON object per kernel")


def execute(args: argparse.Namespace) -> int:
    kernels = [kernel_named(name) for name in args.kernel]
    if args.json:
        for kernel in kernels or registry().values():
            print(json.dumps(_data(kernel)))
        return OK
    if kernels:
        print("\n\n".join("\n".join(_about(kernel)) for kernel in kernels))
        return OK
    names = ("id", "where", "phases", "types", "tiles", "launch", "options", "idea")
    rows = [cells(kernel, *names) for kernel in registry().values()]
    print("\n".join(table([names, *rows], ("phases", "launch", "types", "options", "tiles"))))
    return OK


def _about(kernel: Kernel) -> list[str]:
    """Describe one kernel in full, with one or more lines for each property."""
    names = ("where", "phases", "types", "tiles", "launch", "source")
    rows = [*zip(names, cells(kernel, *names), strict=True)]
    rows += [(o.name, f"{', '.join(map(str, o.values))} (default {o.default}): {o.help}") for o in kernel.options]
    return [f"{kernel.id}: {kernel.title}", *folded([kernel.summary]), *folded(f"  {name:<9} {text}" for name, text in rows)]


def cells(kernel: Kernel, *names: str) -> tuple[str, ...]:
    """Return a kernel's cells in columns of these names."""
    texts = {
        "id": kernel.id,
        "where": {"cpu": "CPU", "cuda": "CUDA"}.get(kernel.backend, "CPU or CUDA"),
        "phases": ", ".join(kernel.phases.values()),
        "types": ", ".join(kernel.dtypes),
        "tiles": ", ".join(map(str, kernel.tiles)) or "-",
        "launch": ", ".join(kernel.launch_modes),
        "options": "; ".join(f"{o.name} {', '.join(map(str, o.values))}" for o in kernel.options) or "-",
        "idea": kernel.summary,
        "source": "; ".join(kernel.papers) or "-",
    }
    return tuple(texts[name] for name in names)


def _data(kernel: Kernel) -> Mapping[str, object]:
    plain = ("id", "title", "backend", "summary", "papers", "phases", "dtypes", "tiles", "launch_modes", "memories")
    options = {o.name: {"values": o.values, "default": o.default, "help": o.help} for o in kernel.options}
    return {name: getattr(kernel, name) for name in plain} | {"options": options}
