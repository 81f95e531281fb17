"""What is remembered of a device between programs: one small file per device and kind, in the user's cache folder."""

from __future__ import annotations

import zlib
from contextlib import suppress
from itertools import chain
from pathlib import Path

import platformdirs

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused
from fwtui.machine import hardware

MOST_BYTES = 1 << 22  # more was not written by this program


def read(kind: str, backend: str, index: int = 0) -> bytes | None:
    """What was kept of this device as it is now; None where nothing was, or nothing can be read."""
    try:
        path = _path(kind, backend, index)
        return path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
    except OSError:
        return None


def write(kind: str, backend: str, index: int, data: bytes) -> None:
    """Keep it, all or nothing. A cache folder that cannot be written keeps nothing, and that is all."""
    path = _path(kind, backend, index)
    with suppress(OSError, Refused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(data)


def _path(kind: str, backend: str, index: int) -> Path:
    """The name changes with whatever changes what the device does: itself, its driver, the compiler."""
    if backend == "cpu":
        machine = hardware.machine()
        identity: tuple[object, ...] = (machine.cpu, machine.cores, hardware.version_of("numba"))
    else:
        known = [(gpu.name, gpu.driver, gpu.multiprocessors) for gpu in hardware.gpus().gpus[index : index + 1]]
        identity = (*chain(*known), hardware.cuda_package())
    return platformdirs.user_cache_path("fwtui") / kind / f"{backend}-{zlib.crc32(repr(identity).encode()):08x}.json"
