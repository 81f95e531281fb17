"""Session files: written by a recorder, read, checked, listed and played. `fwtui.sessions()` lists them."""

import sys
from types import ModuleType


class _Package(ModuleType):
    """The class of this module (`__class__`), which makes it callable."""

    def __call__(self) -> dict[str, str]:
        """Return the names of all sessions, newest first, each with its title; `fwtui.load` takes them."""
        from fwtui.sessions.library import find

        return {entry.name: entry.title for entry in find()}


sys.modules[__name__].__class__ = _Package
