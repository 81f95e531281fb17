"""Where sessions live, and how a file system says no."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from fwtui.common.errors import Refused
from fwtui.common.text import clean

SUFFIX = ".fwt.jsonl"
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PACKAGE = Path(__file__).resolve().parents[1]


def own_folder() -> Path:
    """Where this user's recordings go unless told otherwise; it need not exist yet."""
    return platformdirs.user_data_path("fwtui") / "sessions"


def shipped_folder() -> Path:
    """The recordings that come with the program: inside an installed wheel, else beside the package."""
    installed = _PACKAGE / "_sessions"
    return installed if installed.is_dir() else _PACKAGE.parent / "sessions"


def why(error: Exception) -> str:
    """The reason in an operating system's error, without numbers and paths: "no space left on device"."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]


def new_file(path: str | os.PathLike[str], done: str = "written") -> int:
    """A descriptor of a new, empty file. Raises Refused where something is there already or nothing can be `done`."""
    name = clean(os.fspath(path))
    try:
        return os.open(path, NEW, 0o644)
    except FileExistsError:
        raise Refused(f"{name} exists already and is not overwritten; choose another name") from None
    except (OSError, ValueError) as error:
        raise Refused(f"{name} cannot be {done}: {why(error)}; choose another path") from None
