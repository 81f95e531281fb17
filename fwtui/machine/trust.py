"""Folders whose kernel files this program may run: one line each in a file next to the settings."""

from __future__ import annotations

from pathlib import Path

from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused, as_refused
from fwtui.common.small_file import read_beginning
from fwtui.common.text import sanitise
from fwtui.machine import settings

FILE = "trusted-folders.txt"
LARGEST_FILE = 2**20  # bytes


def warning(path: Path) -> str:
    """Return the warning before a kernel file is run for the first time from its folder, without a full stop."""
    return f"{sanitise(path.name)} is a program: like every kernel file it can do anything that Python can do with your files"


def is_trusted(path: Path) -> bool:
    """Return True if the folder of this file is trusted. A folder inside a trusted one must be trusted separately."""
    return str(path.parent) in _folders()


def trust(path: Path) -> None:
    """Add the folder of this file to the trusted folders. Raises Refused if they cannot be saved."""
    folders = [*_folders(), str(path.parent)]
    if "\n" in folders[-1]:
        raise Refused("the folder's name has a line break, and cannot be stored; rename it")
    with as_refused(f"the folder cannot be stored in {FILE}", "correct that, and try again"):
        _file().parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(_file(), devices=False) as file:
            file.write("".join(f"{folder}\n" for folder in dict.fromkeys(folders)).encode("utf-8", "surrogateescape"))


def _file() -> Path:
    return settings.file_path().parent / FILE


def _folders() -> list[str]:
    """Return the trusted folders. splitlines() would also split at characters that a folder's name may have."""
    try:
        data = read_beginning(_file(), LARGEST_FILE)
    except OSError:
        return []
    whole = data if len(data) < LARGEST_FILE else data.rpartition(b"\n")[0]  # a cut last line names another folder
    return [line for line in whole.decode("utf-8", "surrogateescape").split("\n") if line]
