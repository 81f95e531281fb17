"""What `fwtui solve` asks of the process that does it."""

from __future__ import annotations

from msgspec import Struct


class Request(Struct, frozen=True, kw_only=True):
    """Empty text means: not asked for."""

    file: str
    out: str = ""
    paths: bool = False
    undirected: bool = False
    pairs: str = ""
    source: str = ""
    target: str = ""
    summary: bool = False
    dtype: str = ""
    kernel: str = ""
    device: str = ""
    begun: float | None = None  # time.monotonic() when the command began, in whichever process
