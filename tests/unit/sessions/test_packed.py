"""Sessions packed by gzip are opened as they are."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from session_lines import GOLDEN

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.sessions import reader
from fwtui.sessions.edit_sessions import Shelf
from fwtui.sessions.folders import PACKED, files_in, own_folder
from fwtui.sessions.library import find, resolve


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The oldest session, packed, in the user's own folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    own_folder().mkdir(parents=True)
    path = own_folder() / f"old{PACKED}"
    path.write_bytes(gzip.compress(GOLDEN.read_bytes()))
    return path


def test_it_is_called_by_its_name_alone_and_is_the_session_that_was_packed(
    packed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert files_in(own_folder()) == [packed] and resolve("old") == resolve("ol") == packed
    (entry,) = (entry for entry in find() if entry.own)
    assert entry.name == "old" and entry.complete and entry.size == packed.stat().st_size
    assert main(["check", str(packed)]) == 0 and "Complete" in capsys.readouterr().out
    plain, again = reader.load(GOLDEN), reader.load(packed)
    assert again.complete and [line.raw for line in again.lines] == [line.raw for line in plain.lines]
    otherwise = tmp_path / "sent.fwt.jsonl"  # as a mail program may name it
    otherwise.write_bytes(packed.read_bytes())
    assert reader.load(otherwise).complete
    packed.write_bytes(gzip.compress(GOLDEN.read_bytes()[:-9]))
    cut = reader.load(packed)
    assert cut.torn and cut.whole == plain.whole - 1


def test_its_owner_may_rename_and_delete_it(packed: Path) -> None:
    shelf = Shelf()
    renamed = shelf.rename(packed, "new")
    assert renamed.name == f"new{PACKED}" and reader.load(renamed).complete
    with pytest.raises(Refused, match="new is packed, and so is its title; unpack it with gunzip"):
        shelf.annotate(renamed, "another title")
    shelf.delete(renamed)
    shelf.undo()
    assert files_in(own_folder()) == [renamed]


def test_what_cannot_be_unpacked_is_one_sentence(packed: Path) -> None:
    whole = packed.read_bytes()
    dice = random.Random(1)
    for broken in (whole[:200], whole[:2], whole[:60] + dice.randbytes(60) + whole[120:], whole[:-4] + b"\0\0\0\0"):
        packed.write_bytes(broken)
        with pytest.raises(Refused, match=r"cannot be unpacked: .*; copy it from its source again"):
            reader.load(packed)
