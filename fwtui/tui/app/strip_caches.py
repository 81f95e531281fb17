"""Textual's strips keep no copies of themselves that were cut or restyled: that takes less memory, and less time too.

What changes is cut anew anyway; and strips that hold each other are freed by a full garbage collection only.
"""

from __future__ import annotations

from typing import Any

from textual import strip


class NoCache:
    """Always empty, so that one serves all strips."""

    __slots__ = ()

    def get(self, key: Any) -> None:
        """Nothing is kept."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Nothing is kept."""


_NONE = NoCache()


def leave_out() -> None:
    """For all strips from now on."""
    strip.FIFOCache = lambda maxsize: _NONE  # type: ignore[misc]
