"""Tables on a screen, and what those of runs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.widgets import DataTable

from fwtui.analysis.columns import Column, Row
from fwtui.common import units
from fwtui.tui.widgets import wording

Widths = Sequence[tuple[Column, int]]


def cell(column: Column, row: Row, style: str = "") -> Text:
    """What the column says of the run; a number that nobody should trust is struck through."""
    text = column.text(row)
    if column.measured and text != units.ABSENT and row.run.seconds is not None and wording.doubtful(row.run):
        style = "strike"
    return Text(text, style=style, justify="right" if column.right else "left", overflow="ellipsis", no_wrap=True)


def room_beside(fixed: Sequence[tuple[object, int]], width: int) -> int:
    """Cells that are left for one more column in a table of `width` cells with its scrollbar."""
    return width - 1 - sum(cells + 2 for _, cells in fixed) - 2


class TextTable(DataTable[Text]):
    """As all tables of the program look."""

    DEFAULT_CSS = """
    TextTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    TextTable:focus { background-tint: $background 0%; }
    TextTable > .datatable--header { background: $panel; color: $text-muted; text-style: none; }
    """

    def __init__(self, *, id: str | None = None):
        super().__init__(id=id, cursor_type="row", cell_padding=1)


class RunTable(TextTable):
    """Only cells that changed are written again, and widths never change."""

    def __init__(self, *, id: str | None = None):
        super().__init__(id=id)
        self._columns_shown: Widths = ()
        self._shown: dict[str, Mapping[str, Text]] = {}  # by the key of a row

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value if self.row_count else None

    def begin(self, columns: Widths) -> None:
        """Without rows, under these columns."""
        again = columns == self._columns_shown
        self.clear(columns=not again)
        self._shown.clear()
        self._columns_shown = columns
        for column, width in () if again else columns:
            self.add_column(Text(column.title, justify="right" if column.right else "left"), width=width, key=column.key)

    def write(self, key: str, texts: Mapping[str, Text]) -> bool:
        """What a row says, by the keys of the columns; whether there was none of that key."""
        before = self._shown.get(key)
        self._shown[key] = texts
        if before is None:
            self.add_row(*(texts[column.key] for column, _ in self._columns_shown), key=key)
            return True
        for column, _ in self._columns_shown:
            old, new = before[column.key], texts[column.key]
            if (new.plain, str(new.style)) != (old.plain, str(old.style)):
                self.update_cell(key, column.key, new)
        return False
