"""Opens a file that a user names, or standard input: of bounded size, unpacked if packed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fwtui.common.errors import Refused
from fwtui.graphs.file_options import STDIN

MAX_BYTES = 256 * 2**20  # limit of a text file
MAX_EXPANSION = 200  # times the packed size: text is packed to a tenth, a bomb to a thousandth
_STREAM, MAX_STREAMS = b"\xfd7zXZ\0", 4096  # first bytes of an xz stream; each stream takes memory and time
_BLOCK = 512  # bytes of a block in a file's status
_ALWAYS = 1 << 20  # bytes that any packed file may unpack to
_BUFFER = 1 << 16  # bytes that peek() shows
_UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", _STREAM: ".xz"}  # the first bytes of packed data
STDIN_NAME = "standard input"


@contextmanager
def open_graph_file(
    path: str, name: str, max_bytes: int, progress: Callable[[float], None] = lambda share: None
) -> Iterator[tuple[io.BufferedReader[Any], int]]:
    """Open a file, and return it with its size in bytes (an upper bound if packed); a byte order mark is skipped.

    `progress` is called with the share read (0 to 1). Standard input is read to its end first. Raises Refused if a file is
    not regular, cannot be read, is damaged, or has more than max_bytes.
    """
    if path == STDIN:
        data = _standard_input(max_bytes + 1)
        raw: Any = io.BytesIO(data)
        size = len(data)
        suffix = next((suffix for begin, suffix in _PACKED.items() if data.startswith(begin)), "")
        _check_streams(name, data.count(_STREAM) if suffix == ".xz" else 0)
    else:
        raw, size = _raw_file(path, name, progress)
        suffix = Path(path).suffix.lower()
    unpack = _UNPACK.get(suffix)
    with io.BufferedReader(raw, _BUFFER) as file:
        if size > max_bytes:
            raise Refused(f"{name} has {size:,} bytes, more than {max_bytes:,}; choose a smaller graph")
        try:
            if unpack is not None:
                size = min(max_bytes, MAX_EXPANSION * size + _ALWAYS)
                file = io.BufferedReader(_Bounded(unpack(file), size, name), _BUFFER)  # type: ignore[assignment]
            if file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            yield file, size
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise Refused(f"{name} cannot be unpacked: {str(error).lower()}; fetch the file again") from None
        except OSError as error:
            if error.errno is None:  # gzip and bz2 report damage as an OSError too
                raise Refused(f"{name} cannot be unpacked: {str(error).lower()}; fetch the file again") from None
            raise _unreadable(name, error) from None


def _standard_input(most: int) -> bytes:
    try:
        return sys.stdin.buffer.read(most)
    except OSError as error:
        raise _unreadable(STDIN_NAME, error) from None


def _check_streams(name: str, count: int) -> None:
    if count > MAX_STREAMS:
        raise Refused(f"{name} is packed in more than {MAX_STREAMS:,} pieces; unpack it and pack it again")


def _raw_file(path: str, name: str, progress: Callable[[float], None]) -> tuple[_CountingFile, int]:
    """Return a regular file and its size in bytes. Raises Refused for other kinds and for sparse files."""
    try:
        # O_NONBLOCK: open() would block on a FIFO without a writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise Refused(f"{name!r} is not a path; remove the zero bytes") from None
    except OSError as error:
        raise _unreadable(name, error) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Refused(f"{name} is not a regular file; pass a graph file")
    size, on_disk = status.st_size, _BLOCK * status.st_blocks
    if on_disk and size > max(MAX_BYTES, MAX_EXPANSION * on_disk):  # some file systems report no blocks
        os.close(descriptor)
        raise Refused(f"{name} has {size:,} bytes, of which only {on_disk:,} are on the disk; fetch the file again")
    xz = name if Path(path).suffix.lower() == ".xz" else ""
    return _CountingFile(descriptor, size, progress, xz), size


class _CountingFile(io.FileIO):
    """A file that reports the share read at each read; if `xz` names an xz file, it may consist of few streams only."""

    def __init__(self, descriptor: int, size: int, progress: Callable[[float], None], xz: str = ""):
        super().__init__(descriptor)
        self._size, self._progress = size, progress
        self._xz, self._streams = xz, 0

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        if self._xz:
            self._streams += bytes(buffer[:count]).count(_STREAM)
            _check_streams(self._xz, self._streams)
        self._progress(self.tell() / max(1, self._size))
        return count


class _Bounded(io.RawIOBase):
    """A stream that returns a limited number of bytes."""

    def __init__(self, stream: IO[bytes], most: int, name: str):
        self._stream = stream
        self._remaining = self._most = most
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._remaining -= len(data)
        if self._remaining < 0:
            raise Refused(f"{self._name} unpacks to more than {self._most:,} bytes; unpack it first, or choose a smaller graph")
        buffer[: len(data)] = data
        return len(data)


def _unreadable(name: str, error: OSError) -> Refused:
    return Refused(f"{name} cannot be read: {error.strerror or str(error).lower()}; check the path and its permissions")
