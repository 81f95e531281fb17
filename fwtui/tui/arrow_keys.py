"""Which widgets keep the arrow keys."""

from __future__ import annotations


class Arrowed:
    """Mixed into a widget: while that has the focus, arrows, Home and End are its own and do not move a recording."""
