"""Numbers three rows high, also in ASCII."""

from __future__ import annotations

from textual.app import RenderResult
from textual.content import Content
from textual.renderables.digits import DIGITS
from textual.widgets import Digits

_ASCII = {  # as wide as Textual's own
    **{str(number): rows for number, rows in enumerate(zip(
        (" _ ", "   ", " _ ", " _ ", "   ", " _ ", " _ ", " _ ", " _ ", " _ "),
        ("| |", "  |", " _|", " _|", "|_|", "|_ ", "|_ ", "  |", "|_|", "|_|"),
        ("|_|", "  |", "|_ ", " _|", "  |", " _|", "|_|", "  |", "|_|", " _|"),
        strict=True,
    ))},
    "x": ("   ", "   ", " x "),
}  # fmt: skip


class Large(Digits):
    """Textual's digits; drawn with bars where lines look alike."""

    def render(self) -> RenderResult:
        if not getattr(self.app, "plain", False):
            return super().render()
        signs = [_ASCII.get(c, ("   ", f" {c} ", "   ") if c in DIGITS else (" ", " ", c)) for c in self.value]
        return Content("\n".join("".join(row) for row in zip(*signs, strict=True)))
