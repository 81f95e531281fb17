"""Widgets that keep the arrow keys, and the rows of these keys, alike in all of them."""

from __future__ import annotations

from fwtui.tui.actions import move

FAR = 10**6  # further than anything reaches
ACROSS = (
    move("right", "arrow(0, 1)", "Right", "to the next value", "arrow.right"),
    move("left", "arrow(0, -1)", "Left", "to the value before", "arrow.left"),
    move("home", f"arrow(0, {-FAR})", "First", "to the first value", "arrow.first"),
    move("end", f"arrow(0, {FAR})", "Last", "to the last value", "arrow.last"),
)
DOWN = (
    move("up", "arrow(-1, 0)", "Up", "to the row above", "arrow.up"),
    move("down", "arrow(1, 0)", "Down", "to the row below", "arrow.down"),
)
CHOOSE = move("enter", "choose", "Choose", "what is under the cursor", "arrow.choose")


class Arrowed:
    """Mixed into a widget: while that has the focus, arrows, Home and End are its own and do not move a recording."""

    def action_arrow(self, rows: int, columns: int) -> None:
        """Move its cursor so far, or to its end if that is nearer."""
        raise NotImplementedError
