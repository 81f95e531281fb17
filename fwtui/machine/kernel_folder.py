"""The kernels in the folder of the setting, found by reading their files without running them."""

from __future__ import annotations

import os
from pathlib import Path

from fwtui.common.errors import as_refused
from fwtui.common.text import quoted
from fwtui.machine import settings
from fwtui_kernels.own import about


def kernel_files() -> dict[Path, str]:
    """Return the kernel files with the first line of their docstrings."""
    folder = settings.load().text("kernel_folder")
    with as_refused(f"the kernel_folder {quoted(folder)} of the settings cannot be read", "choose another"):
        files = sorted(Path(os.path.expanduser(folder)).absolute().glob("*.py")) if folder else []
    abouts = {Path(os.path.realpath(file)): about(file) for file in files}
    return {file: about for file, about in abouts.items() if about is not None}
