"""A made-up machine: its GPUs, driver, free memory, shipped sessions and limits."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fwtui.machine import hardware
from fwtui.stream.events import Device


class Pretend:
    """Replacements of facts about the machine until the test ends."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def gpus(self, *gpus: Device, package: str | None = "0.30.4") -> None:
        """Replace the GPUs and the version of numba-cuda."""
        found = hardware.Hardware(gpus=gpus, reason="" if gpus else "there is no GPU here")
        self._patch.setattr(hardware, "gpus", lambda: found)
        self._patch.setattr(hardware, "cuda_package", lambda: package)

    def driver(self, present: bool, engine: Callable[..., Any] | None = None) -> None:
        """Replace the presence of a driver, and the function that opens a GPU for `solve`."""
        from fwtui.solver import engine_choice

        self._patch.setattr(hardware, "driver_present", lambda: present)
        if engine is not None:
            self._patch.setattr(engine_choice, "cuda_engine", engine)

    def free_memory(self, free: int) -> None:
        """Replace the free memory of the host (bytes)."""
        self._patch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free, total=free))

    def limits(self, module: ModuleType | str, **constants: object) -> None:
        """Replace constants of a module, usually by small limits."""
        owner = import_module(module) if isinstance(module, str) else module
        for name, value in constants.items():
            self._patch.setattr(owner, name, value)

    def children(self, kind: Any) -> None:
        """Replace the class of a live session's child processes."""
        self._patch.setattr("fwtui.live.session.EventModule", kind)

    def shipped(self, folder: Path) -> None:
        """Replace the folder of the shipped sessions."""
        self._patch.setattr("fwtui.sessions.library.shipped_folder", lambda: folder)
