"""The user's folders for settings, data and caches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs

NO_HOME = Path("/dev/null/fwtui")  # no process can create it


def cache_folder() -> Path:
    return _folder(platformdirs.user_cache_path)


def config_folder() -> Path:
    return _folder(platformdirs.user_config_path)


def data_folder() -> Path:
    return _folder(platformdirs.user_data_path)


def _folder(find: Callable[[str], Path]) -> Path:
    """Return the folder, which may not exist; NO_HOME for a user without HOME and without an entry in the password file."""
    try:
        return find("fwtui")
    except RuntimeError:
        return NO_HOME
