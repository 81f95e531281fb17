"""Rows as lines of text with aligned columns, as wide as there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Mapping, Sequence
from itertools import zip_longest

MIN_WORDS, MIN_CELLS = 16, 8  # minimum cells of a text column that may take several lines, and of any column


def fitted(
    rows: Sequence[Sequence[str]],
    width: float,
    least: Sequence[str] = (),
    wrapped: Sequence[int] = (-1,),
    only_text: bool = False,
) -> list[str]:
    """Return the lines of a table, of at most `width` cells if possible.

    Columns with titles in `least` are dropped in that order, and a last line names them; the text of the columns `wrapped`
    may take several lines.
    """
    titles, dropped = rows[0], list[str]()
    longest = {i: max(len(row[i]) for row in rows) for i in range(len(titles))}
    right = [] if only_text else _numbers(rows)
    folds = sorted({i % len(titles) for i in wrapped} - {*right}, key=longest.__getitem__)
    widths = {i: min(cells, max(MIN_WORDS, len(titles[i]))) if i in folds else cells for i, cells in longest.items()}
    for title in least:
        if _room(widths, width) >= 0:
            break
        dropped += [title or "±" for i in [*widths] if titles[i] == title and i not in folds and widths.pop(i) >= 0]
    for place, i in enumerate(folds):
        room = _room(widths, width)
        more = min(longest[i] - widths[i], room // (len(folds) - place) if room > 0 else room)
        widths[i] = int(max(widths[i] + more, min(widths[i], MIN_CELLS)))
    lines: list[list[str]] = []
    for row in rows:
        cells = [textwrap.wrap(row[i], widths[i]) if len(row[i]) > widths[i] else [row[i]] for i in widths]
        lines += map(list, zip_longest(*cells, fillvalue=""))
    note = f"not shown for lack of room: {', '.join(dropped)}; a wider terminal or --json shows them"
    below = textwrap.wrap(note, int(width)) if dropped else []
    return [*_aligned(lines, [place for place, i in enumerate(widths) if i in right]), *below]


def _room(columns: Mapping[int, int], width: float) -> float:
    """Return the cells that columns of these widths leave free; negative if they do not fit."""
    return width - sum(columns.values()) - 2 * (len(columns) - 1)


def _numbers(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the numeric columns."""
    return [i for i in range(len(rows[0])) if any(c.isdigit() for row in rows[1:] for c in row[i][:1])]


def _aligned(rows: Sequence[Sequence[str]], right: Container[int]) -> list[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(r, widths, strict=True))
        ).rstrip()
        for r in rows
    ]
