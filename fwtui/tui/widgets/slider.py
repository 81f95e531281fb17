"""A number that is moved by arrows or the mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual import events as ui
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from fwtui.tui.arrow_keys import ACROSS, Arrowed

TITLE, VALUE = 18, 10  # cells of its name and of its value


class Slider(Arrowed, Widget, can_focus=True):
    """One line: name, value, and a bar with a knob. Values are whole numbers from `low` to `high` in steps."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar = [*ACROSS]
    DEFAULT_CSS = """
    Slider { height: 1; }
    Slider .slider--title { color: $text-muted; }
    Slider:focus .slider--title { color: $text-primary; text-style: bold; }
    Slider .slider--value { color: $foreground; text-style: bold; }
    Slider .slider--filled { color: $primary; }
    Slider .slider--track { color: $text-muted; }
    Slider:disabled { opacity: 60%; }
    """
    COMPONENT_CLASSES: ClassVar = {f"slider--{part}" for part in ("title", "value", "filled", "track")}

    value: reactive[int] = reactive(0)
    high: reactive[int] = reactive(0)

    def __init__(
        self, title: str, low: int, high: int, step: int, text: Callable[[int], str], moved: Callable[[Slider], None], id: str
    ):
        """`moved` is called when the user has moved it, and when it gets the focus."""
        super().__init__(id=id)
        self._moved = moved
        self.title = title
        self.low, self.step = low, step
        self._text = text
        self.set_reactive(Slider.value, low)
        self.set_reactive(Slider.high, high)

    def show(self, value: int, high: int | None = None) -> None:
        """Take this value without a message."""
        self.high = self.high if high is None else high
        self.value = min(max(value, self.low), self.high)

    def _bar(self) -> tuple[int, int]:
        """Cells of the bar, and the knob's place in it."""
        cells = max(0, self.size.width - TITLE - VALUE - 1)
        share = (self.value - self.low) / max(self.high - self.low, 1)
        return cells, round(share * (cells - 1)) if cells else 0

    def render_line(self, y: int) -> Strip:
        cells, knob = self._bar()
        parts = [(f"{self.title:<{TITLE}.{TITLE}}", "title"), (f"{self._text(self.value):>{VALUE}} ", "value")]
        if cells:
            sign = "●" if self.has_focus else "┃"
            parts += [("━" * knob, "filled"), (sign, "value"), ("─" * (cells - knob - 1), "track")]
        segments = [Segment(text, self.get_component_rich_style(f"slider--{part}")) for text, part in parts]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def action_arrow(self, rows: int, columns: int) -> None:
        # onto a whole step, also from a value between two of them
        steps = (self.value - self.low) / self.step
        place = int(steps) + columns if columns > 0 or steps == int(steps) else int(steps) + 1 + columns
        self._move(self.low + place * self.step)

    def _move(self, value: int) -> None:
        value = min(max(value, self.low), self.high)
        if value != self.value:
            self.value = value
            self._moved(self)

    def on_focus(self) -> None:
        self._moved(self)

    def on_mouse_down(self, event: ui.MouseDown) -> None:
        self.capture_mouse()
        self._point(event.x)

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._point(event.x)

    def on_mouse_up(self, event: ui.MouseUp) -> None:
        self.release_mouse()

    def _point(self, x: int) -> None:
        cells, _ = self._bar()
        if cells and x >= TITLE + VALUE:
            share = min(1.0, max(0.0, (x - TITLE - VALUE - 1) / max(cells - 1, 1)))
            self._move(self.low + round(share * (self.high - self.low) / self.step) * self.step if share < 1 else self.high)
