"""Stored pictures of screens, without redundant markup and packed in one file per module: 1 KB each instead of 46."""

import re
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from pytest_textual_snapshot import SVGImageExtension
from syrupy.data import Snapshot, SnapshotCollection
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

_SAID = re.compile(
    r'<clipPath.*?</clipPath>\s*|@font-face \{.*?\}\s*| (?:textLength|clip-path|shape-rendering)="[^"]*"|<text [^>]*>\n</text>',
    re.DOTALL,
)
_GROUNDS = re.compile(r'(?:<rect fill="[^"]*" x="[\d.]*" y="[\d.]*" width="[\d.]*" height="24.65"/>\n?)+')
_GROUND = re.compile(r'fill="([^"]*)" x="([\d.]*)" y="([\d.]*)" width="([\d.]*)"')


def bare(picture: str) -> str:
    """Return the picture without fonts, clips and text lengths, and with one background per run of equal colour."""
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


@lru_cache
def pictures(location: str) -> Mapping[str, str]:
    """Return the pictures of a file by their names; none if the file does not exist."""
    if not Path(location).exists():
        return {}
    with tarfile.open(location) as file:
        opened = {member.name.removesuffix(".svg"): file.extractfile(member) for member in file}
        return {name: data.read().decode() for name, data in opened.items() if data is not None}


def pack(location: str, drawn: Mapping[str, str]) -> None:
    """Write the pictures as one reproducible file; without pictures remove the file."""
    pictures.cache_clear()
    Path(location).unlink(missing_ok=True)
    if not drawn:
        return
    with tarfile.open(location, "w:xz", preset=9) as file:
        for name, picture in sorted(drawn.items()):
            data = picture.encode()
            about = tarfile.TarInfo(f"{name}.svg")
            about.size = len(data)
            file.addfile(about, BytesIO(data))


class PackedPicture(SVGImageExtension):
    """Snapshot extension that stores the pictures of a test module in one file and compares them as text."""

    _file_extension = "txz"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return AbstractSyrupyExtension.dirname(test_location=test_location)

    @classmethod
    def _get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        return test_location.basename

    def serialize(self, *given: Any, **named: Any) -> str:
        return bare(super().serialize(*given, **named))

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        kept = pictures(snapshot_location)
        pack(snapshot_location, {name: kept[name] for name in kept.keys() - snapshot_names})

    def _read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        collection = SnapshotCollection(location=snapshot_location)
        for name in pictures(snapshot_location):
            collection.add(Snapshot(name=name))
        return collection

    def _read_snapshot_data_from_location(self, *, snapshot_location: str, snapshot_name: str, session_id: str) -> str | None:
        return pictures(snapshot_location).get(snapshot_name)

    @classmethod
    def _write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection) -> None:
        new = {snapshot.name: str(snapshot.data) for snapshot in snapshot_collection}
        pack(snapshot_collection.location, {**pictures(snapshot_collection.location), **new})
