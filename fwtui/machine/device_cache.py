"""Facts about a device cached between runs of the program: one small file per device and kind, in the user's cache folder."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec

from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Corrupt, Refused
from fwtui.common.user_folders import cache_folder
from fwtui.experiment.device import DeviceId
from fwtui.machine import hardware
from fwtui_kernels.compiled.cache_files import sealed, unsealed

Facts = TypeVar("Facts")
_SUFFIX = ".facts"


def read(kind: str, device: DeviceId, decode: Callable[[bytes], Facts]) -> Facts | None:
    """Return the cached facts about this device in its present state.

    None if there are none, if the file is damaged, or if `decode` rejects its data.
    """
    data = unsealed(_path(kind, device), kind)
    with suppress(msgspec.MsgspecError, Corrupt):
        return decode(data) if data is not None else None
    return None


def damaged() -> list[Path]:
    """Return the files of this cache that are damaged: their facts count as missing."""
    root = cache_folder()
    return [path for path in root.rglob(f"*{_SUFFIX}") if unsealed(path, path.parent.relative_to(root).as_posix()) is None]


def write(kind: str, device: DeviceId, data: bytes) -> bool:
    """Store the facts; return False if the cache folder cannot be written."""
    path = _path(kind, device)
    with suppress(OSError, Refused):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, devices=False) as file:
            file.write(sealed(kind, data))
        return True
    return False


def _path(kind: str, device: DeviceId) -> Path:
    """Return a file name that changes with the device, its driver and the compiler."""
    if device.backend == "cpu":
        machine = hardware.machine()
        identity: tuple[object, ...] = (machine.cpu, machine.cores, hardware.installed_version("numba"))
    else:
        identities = [
            (gpu.name, gpu.driver, gpu.multiprocessors) for gpu in hardware.gpus().gpus[device.index : device.index + 1]
        ]
        identity = (*chain(*identities), hardware.cuda_package())
    return cache_folder() / kind / f"{device.backend}-{zlib.crc32(repr(identity).encode()):08x}{_SUFFIX}"
