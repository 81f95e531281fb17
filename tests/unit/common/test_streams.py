"""Standard streams in a limited encoding, outputs that are not files, and JSON that every reader accepts."""

import errno
import io
import json
import os
import re
import tempfile
from contextlib import redirect_stdout
from math import inf, nan
from pathlib import Path

import pytest

from fwtui.analysis import export
from fwtui.common import atomic_file
from fwtui.common.as_json import as_json
from fwtui.common.atomic_file import atomic_write, sync
from fwtui.common.child_process import StartError
from fwtui.common.errors import Failed, NoGpu, Refused
from fwtui.common.streams import flush_output, prepare_streams, report_error
from fwtui.common.temporary_folder import temporary_folder


def test_signs_of_tables_have_a_spelling_in_ascii() -> None:
    written = io.BytesIO()
    with io.TextIOWrapper(written, "ascii") as out, redirect_stdout(out):
        prepare_streams()
        print("248 ms ± 0.1 %… ░▒▓█ é \udce9", flush=True)
        assert written.getvalue() == b"248 ms +- 0.1 %.. .:%# ? ?\n"


class Full(io.TextIOBase):
    """A stream whose reader has gone, or whose disk is full."""

    def __init__(self, error: OSError, descriptor: int):
        self._error, self._descriptor = error, descriptor

    def flush(self) -> None:
        raise self._error

    def fileno(self) -> int:
        return self._descriptor


@pytest.mark.parametrize(("error", "code"), [(BrokenPipeError(), 141), (OSError(28, "No space left on device"), 1)])
def test_a_failed_flush_decides_the_code(error: OSError, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(tmp_path / "out", "wb") as out, redirect_stdout(Full(error, out.fileno())):
        assert flush_output(0) == code
        os.write(out.fileno(), b"left over")
    assert (tmp_path / "out").read_bytes() == b"" and ("No space left" in capsys.readouterr().err) == (code == 1)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Refused("too many vertices"), 2, "too many vertices"),
        (NoGpu("there is no GPU"), 3, "there is no GPU"),
        (Failed("it died"), 4, "it died"),
        (OSError(errno.EMFILE, "Too many open files"), 2, "too many files are open; close some, or raise the limit, which"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "writing the output failed: No space left on device"),
        (OSError(errno.EAGAIN, "Try again"), 1, "the system refused a call: Try again"),
        (OSError(errno.EACCES, "Permission denied", "a.gr"), 1, "a.gr cannot be used: permission denied"),
        (StartError(OSError(errno.EAGAIN, "Try again"), "/bin/python"), 2, "the process python was not started: try again; end"),
        (StartError(OSError(errno.EMFILE, "Too many"), "mpiexec"), 2, "the process mpiexec was not started: too many; close"),
    ],
)
def test_a_refused_process_is_one_sentence(error: Exception, code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(error, "") == code
    assert re.fullmatch(f"fwtui: {words}.*\n", capsys.readouterr().err)


def test_a_device_is_written_to_and_a_pipe_in_the_place_of_a_cache_is_replaced(tmp_path: Path) -> None:
    (ours, theirs), path = os.openpty(), tmp_path / "cache"
    os.mkfifo(path)
    try:
        with atomic_write(os.ttyname(theirs)) as file:
            file.write(b"it")
        assert os.read(ours, 9) == b"it" and os.isatty(theirs)
        with atomic_write(path, devices=False) as file:
            file.write(b"ours")
        assert path.read_bytes() == b"ours"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("force", [True, False])
def test_a_file_is_on_the_disk_before_it_has_its_name(force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = tmp_path / "out", list[str]()
    monkeypatch.setattr(atomic_file, "sync", lambda descriptor: done.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    monkeypatch.setattr(os, "replace", lambda source, target, replace=os.replace: (done.append("named"), replace(source, target)))
    with atomic_write(path, force=force) as file, io.TextIOWrapper(file) as text:
        text.write("whole")
    assert path.read_text() == "whole" and done.pop() == str(tmp_path)
    assert done == [done[0], "named"] and done[0].startswith(f"{tmp_path}/")


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(Refused, match="out exists already and is not overwritten"), atomic_write(path, force=False):
        path.write_text("theirs")
    with pytest.raises(Refused, match="exists already"), atomic_write(path, force=False):
        pytest.fail("it was opened")
    assert [*tmp_path.iterdir()] == [path] and path.read_text() == "theirs"


def test_a_temporary_folder_does_not_outlive_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as folder, temporary_folder() as second:
        assert {*tmp_path.iterdir()} == {folder, second}
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(Refused, match="set TMPDIR"), temporary_folder():
        pass


@pytest.mark.parametrize(
    ("platform", "knows", "asked"),
    [("darwin", True, ["F_FULLFSYNC"]), ("darwin", False, ["F_FULLFSYNC", "fsync"]), ("linux", True, ["fsync"])],
)
def test_macos_flushes_the_disk_cache(platform: str, knows: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append("fsync"))

    def control(descriptor: int, command: int) -> None:
        done.append({51: "F_FULLFSYNC"}[command])
        if not knows:
            raise OSError(errno.ENOTSUP, "not supported")

    sync(3, platform, control)
    assert done == asked


def test_non_finite_numbers_are_null_and_empty_in_tables() -> None:
    told = {"a": [inf, {"b": -inf}, 1.5], "ü": nan}
    assert json.loads(as_json(told)) == {"a": [None, {"b": None}, 1.5], "ü": None}
    assert as_json({"ü": 1.5}) == '{"\\u00fc": 1.5}' and as_json({"ü": inf}, ensure_ascii=False) == '{"ü": null}'
    for write, text in ((export.write_csv, "a,b\n,1\n"), (export.write_markdown, "|  | 1 |\n")):
        out = io.StringIO()
        write([{"a": inf, "b": 1}], out)
        assert out.getvalue().endswith(text)
