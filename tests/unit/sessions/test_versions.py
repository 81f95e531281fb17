"""Versions of a kernel's files: numbered, bounded, and gone back to without losing what stands there."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from fwtui.common.errors import Refused
from fwtui.sessions.versions import Version, Versions, curve, texts_of


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mine.py").write_text("first\n")
    return tmp_path / "mine.py"


def judged(path: Path, **more: object) -> Version:
    base = Version(number=0, saved="2026-11-22T13:00:00+00:00", texts=texts_of(path), verdict="right", right=True)
    return Versions(path).add(replace(base, **more))


def test_a_save_that_changed_nothing_is_no_new_version(path: Path) -> None:
    assert judged(path).number == 1
    assert judged(path, verdict="wrong", right=False).number == 1
    path.write_text("second\n")
    assert judged(path).number == 2
    assert [(version.number, version.verdict) for version in Versions(path).all()] == [(1, "wrong"), (2, "right")]


def test_going_back_keeps_what_stands_there_and_brings_the_source_beside_it(path: Path) -> None:
    path.with_suffix(".cu").write_bytes(b"// kernels\r\n")
    judged(path)
    path.write_text("second\n")
    path.with_suffix(".cu").write_text("// others\n")
    Versions(path).back(1)
    assert path.read_text() == "first\n" and path.with_suffix(".cu").read_bytes() == b"// kernels\r\n"
    kept = Versions(path).all()[-1]
    assert (kept.number, kept.verdict, kept.texts) == (2, "not judged", {".py": "second\n", ".cu": "// others\n"})
    Versions(path).back(2)
    assert path.read_text() == "second\n" and len(Versions(path).all()) == 2


def test_a_version_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    with pytest.raises(Refused, match=r"there is no version 3 of mine.py; `fwtui watch` keeps each save that it judges"):
        Versions(path).back(3)
    judged(path)
    with pytest.raises(Refused, match=r"there is no version 3 of mine.py; kept are 1"):
        Versions(path).back(3)
    assert path.read_text() == "first\n"


def test_only_the_last_ones_are_kept_and_numbers_go_on(path: Path) -> None:
    for number in range(5):
        path.write_text(f"{number}\n")
        Versions(path, most=3).keep_unjudged()
    assert [version.number for version in Versions(path).all()] == [3, 4, 5]
    path.write_text("x" * 600)
    Versions(path, most_bytes=700).keep_unjudged()
    assert [version.number for version in Versions(path).all()] == [6]
    path.write_text("x" * 900)
    Versions(path, most_bytes=700).keep_unjudged()
    assert [version.number for version in Versions(path).all()] == [7], "the last one is kept however long it is"


def test_a_version_that_cannot_be_read_is_never_written_over(path: Path) -> None:
    versions = Versions(path)
    for text in ("one", "two"):
        path.write_text(text)
        versions.keep_unjudged()
    (damaged,) = versions.folder.glob("*2.json")
    damaged.write_text("{")
    path.write_text("three")
    versions.keep_unjudged()
    assert [version.number for version in versions.all()] == [1, 3] and damaged.read_text() == "{"
    path.unlink()
    assert versions.back(3).number == 3 and path.read_text() == "three"


def test_what_cannot_be_read_is_left_out_and_what_is_no_text_is_refused(path: Path) -> None:
    judged(path)
    (Versions(path).folder / "00000002.json").write_text("{")
    (Versions(path).folder / "notes.txt").write_text("mine")
    assert [version.number for version in Versions(path).all()] == [1]
    path.write_bytes(b"\xff")
    with pytest.raises(Refused, match=r"no version of mine.py can be kept: it is not UTF-8"):
        Versions(path).back(1)
    assert path.read_bytes() == b"\xff"


def test_a_curve_has_the_times_that_can_be_compared(path: Path) -> None:
    timed = {"seconds": 2.0, "n": 512, "where": "0 0"}
    told = [judged(path, **timed)]
    for number, more in enumerate(({"right": False}, {"n": 1024}, {"seconds": 1.0})):
        path.write_text(f"{number}\n")
        told.append(judged(path, **timed | more))
    assert curve(told) == [(1, 2.0), (2, None), (3, None), (4, 1.0)]
    assert curve([replace(told[0], seconds=None)]) == []
