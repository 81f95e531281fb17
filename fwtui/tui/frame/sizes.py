"""The sizes of a terminal from which on screens look otherwise, as classes for their style sheets."""

from __future__ import annotations

WIDTHS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # columns from which a screen has the class
HEIGHTS = [(0, "-tiny"), (16, "-flat"), (20, "-short"), (32, "-tall"), (50, "-high")]


def classes_at(width: int, height: int) -> set[str]:
    """What Textual gives a screen in a terminal of that size."""
    return {max(step for step in steps if step[0] <= size)[1] for size, steps in ((width, WIDTHS), (height, HEIGHTS))}
