"""Facts about a device kept between runs of the program: one small file per device and kind, in the user's cache folder."""

from __future__ import annotations

import zlib
from contextlib import suppress
from itertools import chain
from pathlib import Path

import platformdirs

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.machine import hardware

MOST_BYTES = 1 << 22  # a larger file is not from this program


def read(kind: str, device: DeviceId) -> bytes | None:
    """The facts kept about this device in its present state; None if there are none or they cannot be read."""
    try:
        path = _path(kind, device)
        return path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
    except OSError:
        return None


def write(kind: str, device: DeviceId, data: bytes) -> bool:
    """Keep it whole or not at all; False if the cache folder cannot be written, and nothing is kept."""
    path = _path(kind, device)
    with suppress(OSError, Refused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(data)
        return True
    return False


def _path(kind: str, device: DeviceId) -> Path:
    """A file name that changes with the device, its driver and the compiler."""
    if device.backend == "cpu":
        machine = hardware.machine()
        identity: tuple[object, ...] = (machine.cpu, machine.cores, hardware.version_of("numba"))
    else:
        identities = [
            (gpu.name, gpu.driver, gpu.multiprocessors) for gpu in hardware.gpus().gpus[device.index : device.index + 1]
        ]
        identity = (*chain(*identities), hardware.cuda_package())
    return platformdirs.user_cache_path("fwtui") / kind / f"{device.backend}-{zlib.crc32(repr(identity).encode()):08x}.json"
