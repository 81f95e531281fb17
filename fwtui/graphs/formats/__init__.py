"""Which graph files are read, by the ends of their names."""

from __future__ import annotations

from pathlib import Path

from fwtui.common.errors import Refused
from fwtui.common.text import shown

SUFFIXES = (".gr", ".mtx", ".txt", ".edges", ".el", ".snap", ".csv", ".tsv", ".npy", ".npz", ".graphml")
PACKED = (".gz", ".bz2", ".xz")


def suffix_of(path: str) -> str:
    """The suffix that says what is in the file, without the one that says how it is packed. Raises Refused for an unknown one."""
    whole = Path(path)
    suffix = (Path(whole.stem) if whole.suffix.lower() in PACKED else whole).suffix.lower()
    if suffix not in SUFFIXES:
        name = shown(whole.name)
        raise Refused(f"{name} ends in none of {', '.join(SUFFIXES)} (or those with {', '.join(PACKED)}); rename or convert it")
    return suffix
