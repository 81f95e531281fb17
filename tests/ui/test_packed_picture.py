"""The file that a screen's picture is kept in."""

from __future__ import annotations

from pathlib import Path

from packed_picture import PackedPicture, bare
from syrupy.data import Snapshot, SnapshotCollection


def test_pictures_come_back_as_they_were_and_are_the_same_file_every_time(tmp_path: Path) -> None:
    drawn = {"test_a[80x24]": '<svg id="terminal-title">∞ ≤ µs</svg>\n', "test_b": "<svg></svg>"}
    places = [str(tmp_path / name) for name in ("a.txz", "b.txz")]
    for place, order in zip(places, (1, -1), strict=True):
        for name in [*drawn][::order]:
            collection = SnapshotCollection(location=place)
            collection.add(Snapshot(name=name, data=drawn[name]))
            PackedPicture._write_snapshot_collection(snapshot_collection=collection)
    assert Path(places[0]).read_bytes() == Path(places[1]).read_bytes()
    kept = PackedPicture()

    def read(place: str) -> list[str | None]:
        return [kept._read_snapshot_data_from_location(snapshot_location=place, snapshot_name=n, session_id="") for n in drawn]

    assert read(places[0]) == [*drawn.values()]
    assert {snapshot.name for snapshot in kept._read_snapshot_collection(snapshot_location=places[0])} == drawn.keys()
    kept.delete_snapshots(snapshot_location=places[0], snapshot_names={"test_b"})
    assert read(places[0]) == [drawn["test_a[80x24]"], None]
    kept.delete_snapshots(snapshot_location=places[0], snapshot_names={"test_a[80x24]"})
    assert not Path(places[0]).exists() and read(places[0]) == [None, None]


def test_only_what_can_be_seen_is_kept_of_it() -> None:
    def ground(colour: str, *places: tuple[float, float], y: str = "1.5", more: str = ' shape-rendering="crispEdges"') -> str:
        return "".join(f'<rect fill="{colour}" x="{x:g}" y="{y}" width="{w:g}" height="24.65"{more}/>' for x, w in places)

    def word(text: str, more: str = ' textLength="24.4" clip-path="url(#terminal-line-0)"') -> str:
        return f'<text class="terminal-r1" x="0" y="20"{more}>{text}</text>'

    clips = '<clipPath id="terminal-line-0">\n<rect x="0" y="1.5" width="24.4" height="24.65"/>\n</clipPath>\n'
    cells = ground("#111111", (0, 12.2), (12.2, 12.2)) + ground("#222222", (24.4, 12.2)) + ground("#222222", (0, 12.2), y="25.9")
    apart = ground("#111111", (0, 12.2), (24.4, 12.2), y="50.3")
    picture = bare(f"<defs>{clips}</defs>{cells}{apart}{word('ab')}{word(chr(10))}")
    wanted = (
        ground("#111111", (0, 24.4), more=""),
        ground("#222222", (24.4, 12.2), more=""),
        ground("#222222", (0, 12.2), y="25.9", more=""),
        *(ground("#111111", place, y="50.3", more="") for place in ((0, 12.2), (24.4, 12.2))),
    )
    assert picture == f"<defs></defs>{''.join(f'{part}{chr(10)}' for part in wanted)}{word('ab', '')}"
    assert bare(picture) == picture
    for other in (cells.replace("#222222", "#222223"), cells.replace("36.6", "12.2").replace('x="24.4"', 'x="48.8"')):
        assert bare(other) != bare(cells)
