"""Pictures of screens as they are kept: without what their grid of cells says anyway, and packed with gzip: 3 KB, not 46."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

from pytest_textual_snapshot import SVGImageExtension
from syrupy.data import SnapshotCollection

_SAID = re.compile(
    r'<clipPath.*?</clipPath>\s*|@font-face \{.*?\}\s*| (?:textLength|clip-path|shape-rendering)="[^"]*"|<text [^>]*>\n</text>',
    re.DOTALL,
)
_GROUNDS = re.compile(r'(?:<rect fill="[^"]*" x="[\d.]*" y="[\d.]*" width="[\d.]*" height="24.65"/>\n?)+')
_GROUND = re.compile(r'fill="([^"]*)" x="([\d.]*)" y="([\d.]*)" width="([\d.]*)"')


def bare(picture: str) -> str:
    """The picture without fonts, clips and lengths of words; neighbours of one colour have one ground."""
    return _GROUNDS.sub(_joined, _SAID.sub("", picture))


def _joined(grounds: re.Match[str]) -> str:
    joined: list[tuple[str, str, float, float]] = []  # colour, y, from x, to x
    for colour, x, y, width in _GROUND.findall(grounds[0]):
        begin, end = float(x), float(x) + float(width)
        if joined and joined[-1][:2] == (colour, y) and abs(joined[-1][3] - begin) < 0.5:
            begin = joined.pop()[2]
        joined.append((colour, y, begin, end))
    return "".join(
        f'<rect fill="{colour}" x="{begin:g}" y="{y}" width="{round(end - begin, 1):g}" height="24.65"/>\n'
        for colour, y, begin, end in joined
    )


class PackedPicture(SVGImageExtension):
    """Compares and reports pictures as text; only the file is packed, so that a picture that is the same is not written again."""

    _file_extension = "svg.gz"

    def serialize(self, *given: Any, **named: Any) -> str:
        return bare(super().serialize(*given, **named))

    def _read_snapshot_data_from_location(self, *, snapshot_location: str, snapshot_name: str, session_id: str) -> str | None:
        try:
            packed = Path(snapshot_location).read_bytes()
        except FileNotFoundError:
            return None
        return bare(gzip.decompress(packed).decode())

    @classmethod
    def _write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection) -> None:
        (picture,) = snapshot_collection
        Path(snapshot_collection.location).write_bytes(gzip.compress(str(picture.data).encode(), 9, mtime=0))
