"""The file that a screen's picture is kept in."""

from __future__ import annotations

import gzip
from pathlib import Path

from packed_picture import PackedPicture
from syrupy.data import Snapshot, SnapshotCollection


def test_a_picture_comes_back_as_it_was_and_is_the_same_file_every_time(tmp_path: Path) -> None:
    written: list[bytes] = []
    for name in ("a.svg.gz", "b.svg.gz"):
        collection = SnapshotCollection(location=str(tmp_path / name))
        collection.add(Snapshot(name="of a screen", data='<svg id="terminal-title">∞ ≤ µs</svg>\n'))
        PackedPicture._write_snapshot_collection(snapshot_collection=collection)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0]).decode() == '<svg id="terminal-title">∞ ≤ µs</svg>\n'
    again = PackedPicture()._read_snapshot_data_from_location
    kept = again(snapshot_location=str(tmp_path / "a.svg.gz"), snapshot_name="of a screen", session_id="")
    assert kept == '<svg id="terminal-title">∞ ≤ µs</svg>\n'
    assert again(snapshot_location=str(tmp_path / "c.svg.gz"), snapshot_name="of no screen", session_id="") is None
