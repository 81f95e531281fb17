"""The folders and the suffixes of session files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fwtui.common.errors import as_refused
from fwtui.common.text import sanitise
from fwtui.common.user_folders import data_folder

SUFFIX = ".fwt.jsonl"
PACKED = f"{SUFFIX}.gz"
AUTOSAVED = "kept"  # the folder of automatically saved sessions, next to the user's
_PACKAGE = Path(__file__).resolve().parents[1]


def own_folder() -> Path:
    """Return the default folder of the user's recordings; it may not exist yet."""
    return data_folder() / "sessions"


def kept_folder() -> Path:
    """Return the folder of the automatically saved sessions; it may not exist yet."""
    return own_folder().with_name(AUTOSAVED)


def shipped_folder(package: Path = _PACKAGE) -> Path:
    """Return the folder of the shipped recordings: inside an installed wheel, else next to the package."""
    installed = package / "_sessions"
    return installed if installed.is_dir() else package.parent / "sessions"


def bare(name: str) -> str:
    """Return the name without the suffix of a session file."""
    return name.removesuffix(PACKED).removesuffix(SUFFIX)


def stem(path: Path) -> str:
    """Return the name of a session file, as commands accept it."""
    return bare(path.name)


def files_in(folder: Path) -> list[Path]:
    """Return the session files of a folder by name; none if it does not exist: the first recording creates the user's folder."""
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.name.endswith((SUFFIX, PACKED)))
    return []


def make(folder: Path) -> None:
    """Create the folder unless it exists. Raises Refused."""
    with as_refused(f"the folder {sanitise(str(folder))} cannot be created", "choose another one", ValueError):
        folder.mkdir(parents=True, exist_ok=True)
