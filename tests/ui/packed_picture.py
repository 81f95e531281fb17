"""Pictures of screens as they are kept: an SVG packed with gzip is an eighth of its size."""

from __future__ import annotations

import gzip
from pathlib import Path

from pytest_textual_snapshot import SVGImageExtension, normalize_svg
from syrupy.data import SnapshotCollection


class PackedPicture(SVGImageExtension):
    """Compares and reports pictures as text; only the file is packed, so that a picture that is the same is not written again."""

    _file_extension = "svg.gz"

    def _read_snapshot_data_from_location(self, *, snapshot_location: str, snapshot_name: str, session_id: str) -> str | None:
        try:
            packed = Path(snapshot_location).read_bytes()
        except FileNotFoundError:
            return None
        return normalize_svg(gzip.decompress(packed).decode())

    @classmethod
    def _write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection) -> None:
        (picture,) = snapshot_collection
        Path(snapshot_collection.location).write_bytes(gzip.compress(str(picture.data).encode(), 9, mtime=0))
