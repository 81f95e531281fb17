"""Whether a graph fits into memory and into its file, said before it is made."""

from __future__ import annotations

import shutil
from math import isqrt
from pathlib import Path

import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.text import clean
from fwtui.common.units import memory
from fwtui.experiment.experiment import Experiment
from fwtui.graphs.formats import written_as
from fwtui.graphs.opening import MAX_BYTES
from kernels.plan import ITEMSIZE

SURELY = 0.9  # of the expected text: how many edges there are is only known afterwards


def check_room(asked: Experiment, out: Path) -> None:
    """Raises Refused where the generated graph fits neither into memory, nor into its file."""
    form = written_as(out)
    needed = asked.n**2 * ITEMSIZE[asked.dtype]
    _check(asked, needed, psutil.virtual_memory().available - KEPT_FREE, "memory")
    if form.says("ARRAYS") and out.parent.is_dir():
        _check(asked, needed, shutil.disk_usage(out.parent).free, "disk space")
    text = _text_bytes(asked, form.says("ARC_BYTES"))
    if SURELY * text > MAX_BYTES:
        raise Refused(
            f"{clean(out.name)} would have about {text:,.0f} bytes of text, more than {MAX_BYTES:,}; "
            f"choose .npz, or a smaller or sparser graph"
        )


def _check(asked: Experiment, needed: int, free: int, what: str) -> None:
    if needed > free:
        fits = isqrt(max(0, free) // ITEMSIZE[asked.dtype])
        raise Refused(
            f"a graph of {asked.n:,} vertices in {asked.dtype} needs {memory(needed)} of {what} and {memory(max(0, free))} are "
            f"free for it; choose n up to {fits}"
        )


def _text_bytes(asked: Experiment, arc_bytes: int) -> float:
    """What as many edges as are expected take as text at least, which is nothing where their format does not say."""
    n = asked.n
    digits = sum(n + 1 - 10**length for length in range(len(str(n)))) / n  # of a vertex, on average
    return asked.density * n * (n - 1) * (2 * digits + arc_bytes) if arc_bytes else 0.0
