"""What the program knows of compiled code that it kept."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwtui.common import environment
from fwtui.common.errors import Refused


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this program's folder is, in one of this user alone; nothing is there yet."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    environment.cache_folder.cache_clear()
    yield tmp_path / "cache" / "fwtui"
    environment.cache_folder.cache_clear()


def test_the_folder_and_those_above_it_are_for_this_user_alone(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = os.umask(0)
    try:
        folder = environment.cache_folder()
    finally:
        os.umask(before)
    made = [folder, *folder.parents[:3]]
    assert cache in made and [path.stat().st_mode & 0o777 for path in made] == [0o700] * 4
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("harm", ["writable", "by its group", "foreign", "above", "foreign above", "behind a link"])
def test_where_another_user_could_write_nothing_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    folder = environment.cache_folder()
    environment.cache_folder.cache_clear()
    bad = folder
    if harm in ("writable", "by its group"):
        folder.chmod(0o777 if harm == "writable" else 0o770)
    elif harm == "foreign":
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
    elif harm == "above":
        bad = cache.parent
        bad.chmod(0o777)
    elif harm == "foreign above":
        bad = cache.parent
        os.chown(bad, 12345, -1) if os.getuid() == 0 else pytest.skip("only root gives a folder away")
    else:
        bad = cache.parents[1] / "open"
        bad.mkdir()
        cache.parent.rename(bad / "cache")
        cache.parent.symlink_to(bad / "cache")
        bad.chmod(0o777)
    private = environment.cache_folder()
    said = capsys.readouterr().err
    assert private != folder and private.stat().st_mode & 0o777 == 0o700 and not environment.lasting()
    assert str(bad) + " " in said and said.count("\n") == 1 and "XDG_CACHE_HOME" in said


def test_a_sticky_folder_above_does_no_harm_and_open_ones_of_the_program_are_closed(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o775)  # as an earlier version made it
    cache.parent.chmod(0o1777)
    assert environment.cache_folder().is_relative_to(cache) and cache.stat().st_mode & 0o777 == 0o700


def test_a_number_of_threads_that_numba_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    with pytest.raises(Refused, match="NUMBA_NUM_THREADS is '0', and compiled kernels need a thread; give 1 or more"):
        environment.worker_environment("real")


def test_only_what_other_versions_compiled_long_ago_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment.cache_folder.cache_clear()
    try:
        own = environment.cache_folder()
        for name, age in (("old", 40), ("young", 1), (own.name, 40)):
            file = own.parent / name / "kernels_1" / "a.nbi"
            file.parent.mkdir(parents=True)
            file.write_bytes(b"12345")
            for path in (file, file.parent, file.parent.parent):
                then = time.time() - age * 86400
                os.utime(path, (then, then))
        assert environment.forget_old_editions() == 5
        assert {folder.name for folder in own.parent.iterdir()} == {"young", own.name}
        assert environment.forget_old_editions() == 0
        monkeypatch.setattr(Path, "iterdir", lambda folder: iter([tmp_path / "gone"]))
        assert environment.forget_old_editions() == 0, "another process has removed it meanwhile"
    finally:
        environment.cache_folder.cache_clear()
