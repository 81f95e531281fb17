"""List every kernel with its tiles, types and options."""

from __future__ import annotations

import argparse
import json

from fwtui.analysis.report import table
from fwtui.commands import OK
from kernels import registry
from kernels.plan import Kernel

ORDER = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object per kernel")


def execute(given: argparse.Namespace) -> int:
    if given.json:
        for kernel in registry().values():
            print(json.dumps(_data(kernel)))
        return OK
    rows = [("id", "where", "phases", "types", "tiles", "launch", "options", "idea")]
    rows += [
        (
            k.id,
            {"cpu": "CPU", "cuda": "CUDA"}[k.backend],
            ", ".join(k.phases.values()),
            ", ".join(k.dtypes),
            ", ".join(map(str, k.tiles)) or "-",
            ", ".join(k.launch_modes),
            "; ".join(f"{o.name} {', '.join(map(str, o.values))}" for o in k.options) or "-",
            k.summary,
        )
        for k in registry().values()
    ]
    print("\n".join(table(rows)))
    return OK


def _data(kernel: Kernel) -> dict[str, object]:
    return {
        "id": kernel.id,
        "title": kernel.title,
        "backend": kernel.backend,
        "summary": kernel.summary,
        "papers": list(kernel.papers),
        "phases": dict(kernel.phases),
        "dtypes": list(kernel.dtypes),
        "tiles": list(kernel.tiles),
        "launch_modes": list(kernel.launch_modes),
        "memories": list(kernel.memories),
        "options": {o.name: {"values": list(o.values), "default": o.default, "help": o.help} for o in kernel.options},
    }
