"""The kernels in the folder of the setting, found by reading their files without running them."""

from __future__ import annotations

from pathlib import Path

from fwtui.machine import settings
from fwtui_kernels.own import about


def kernel_files() -> dict[Path, str]:
    """Return the kernel files with the first line of their docstrings."""
    folder = settings.load().text("kernel_folder")
    files = sorted(Path(folder).expanduser().absolute().glob("*.py")) if folder else []
    abouts = {file.resolve(): about(file) for file in files}
    return {file: about for file, about in abouts.items() if about is not None}
