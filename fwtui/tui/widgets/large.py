"""Numbers three rows high, or five rows of filled blocks for a projector."""

from __future__ import annotations

from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Digits

from fwtui.tui.widgets.text_panel import VEILED

# each dot is two cells wide
_FILLED = {sign: rows.split() for sign, rows in {
    "0": "### #.# #.# #.# ###", "1": ".#. ##. .#. .#. ###", "2": "### ..# ### #.. ###", "3": "### ..# ### ..# ###",
    "4": "#.# #.# ### ..# ..#", "5": "### #.. ### ..# ###", "6": "### #.. ### #.# ###", "7": "### ..# ..# ..# ..#",
    "8": "### #.# ### #.# ###", "9": "### #.# ### ..# ###", "x": "... #.# .#. #.# ...", ".": ". . . . #",
    "?": "### ..# .## ... .#.",
}.items()}  # fmt: skip
TALL = 5  # rows


def filled(value: str) -> list[str]:
    """Return the value in filled digits; characters that are not digits are on the last row."""
    rows = [""] * TALL
    for sign in value:
        dots = _FILLED.get(sign)
        for row in range(TALL):
            if dots is None:
                rows[row] += sign if row == TALL - 1 else " "
            else:
                rows[row] += "".join(("█" if dot == "#" else " ") * 2 for dot in dots[row]) + " "
    return rows


class Large(Digits):
    """Textual's digits, or filled ones."""

    tall = False

    def enlarge(self, tall: bool) -> None:
        """True for filled digits."""
        if tall != self.tall:
            self.tall = tall
            self.refresh(layout=True)

    def render(self) -> RenderResult:
        shown = "?" if self.has_class(VEILED) else self.value
        return Content("\n".join(filled(shown))) if self.tall else Content(shown) if shown == "?" else super().render()

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return len(filled(self.value)[0]) if self.tall else super().get_content_width(container, viewport)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return TALL if self.tall else super().get_content_height(container, viewport, width)
