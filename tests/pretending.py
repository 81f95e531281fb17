"""A machine as a test wants it: its GPUs, its driver, its free memory, the kernels of its user, and how much is much for it."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fwtui.machine import hardware
from fwtui.stream.events import Device


class Pretend:
    """What the test says holds until it ends."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def gpus(self, *gpus: Device, package: str | None = "0.30.4") -> None:
        """These GPUs, or none; and this version of numba-cuda."""
        found = hardware.Hardware(gpus=gpus, reason="" if gpus else "there is no GPU here")
        self._patch.setattr(hardware, "gpus", lambda: found)
        self._patch.setattr(hardware, "cuda_package", lambda: package)

    def driver(self, present: bool, engine: Callable[..., Any] | None = None) -> None:
        """A driver or none, and what opens a GPU for `solve`."""
        from fwtui.solver import choose

        self._patch.setattr(hardware, "driver_present", lambda: present)
        if engine is not None:
            self._patch.setattr(choose, "cuda_engine", engine)

    def free_memory(self, free: int) -> None:
        """So many bytes of the host's memory."""
        self._patch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free, total=free))

    def limits(self, module: ModuleType | str, **constants: object) -> None:
        """What the module has as constants is small, or soon over."""
        owner = import_module(module) if isinstance(module, str) else module
        for name, value in constants.items():
            self._patch.setattr(owner, name, value)

    def children(self, kind: Any) -> None:
        """Every child that a live session begins is of this kind."""
        self._patch.setattr("fwtui.live.session.Child", kind)

    def shipped(self, folder: Path) -> None:
        """The sessions that come with the program are in this folder."""
        self._patch.setattr("fwtui.sessions.library.shipped_folder", lambda: folder)
