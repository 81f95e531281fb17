"""The rungs of Lund and Smith by name."""

from __future__ import annotations

from functools import partial

from fwtui.campaigns.reproduce.runs import Make, ask

CPU, NAIVE, KATZ, OPTIMIZED, STAGED = "serial", "naive", "katz-kider", "optimized", "staged-load"
REGISTER, ROW_MAJOR, NATURAL = "register-tile", "staged-row-major", "staged-natural"
RUNGS = (NAIVE, KATZ, OPTIMIZED, STAGED)


def at(kernel: str) -> Make:
    return partial(ask, kernel)
