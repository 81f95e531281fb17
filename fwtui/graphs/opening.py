"""Opens a file that a user names: regular, of bounded size, unpacked if packed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fwtui.common.errors import Refused

MAX_BYTES = 256 * 2**20  # of a file of text
MAX_EXPANSION = 200  # times the packed size: text is packed to a tenth, a bomb to a thousandth
_STREAM, MAX_STREAMS = b"\xfd7zXZ\0", 4096  # how a stream of xz begins; each takes its own memory, and time
_BLOCK = 512  # bytes of a block in a file's status
_ALWAYS = 1 << 20  # bytes that any packed file may unpack to
_UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def opened(
    path: str, name: str, max_bytes: int, tell: Callable[[float], None] = lambda share: None
) -> Iterator[tuple[io.BufferedReader[Any], int]]:
    """The file and its size in bytes (an upper bound if packed); a byte order mark is skipped. `tell` gets the share read.

    Raises Refused if it is not a regular file, cannot be read, is damaged, or has more than max_bytes.
    """
    try:
        # without O_NONBLOCK a FIFO would block forever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise Refused(f"{name!r} is not a path; remove the zero bytes") from None
    except OSError as error:
        raise _unreadable(name, error) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Refused(f"{name} is not a regular file; give a graph file")
    size, on_disk = status.st_size, _BLOCK * status.st_blocks
    unpack = _UNPACK.get(Path(path).suffix.lower())
    with io.BufferedReader(_Watched(descriptor, size, tell, name if unpack is lzma.open else "")) as file:
        if size > max_bytes:
            raise Refused(f"{name} has {size:,} bytes, more than {max_bytes:,}; choose a smaller graph")
        if on_disk and size > max(MAX_BYTES, MAX_EXPANSION * on_disk):  # some file systems do not say what is on the disk
            raise Refused(f"{name} has {size:,} bytes, of which only {on_disk:,} are on the disk; fetch the file again")
        try:
            if unpack is not None:
                size = min(max_bytes, MAX_EXPANSION * size + _ALWAYS)
                file = io.BufferedReader(_Bounded(unpack(file), size, name))  # type: ignore[assignment]
            if file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            yield file, size
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise Refused(f"{name} cannot be unpacked: {str(error).lower()}; fetch the file again") from None
        except OSError as error:
            if error.errno is None:  # gzip and bz2 report damage as an OSError too
                raise Refused(f"{name} cannot be unpacked: {str(error).lower()}; fetch the file again") from None
            raise _unreadable(name, error) from None


class _Watched(io.FileIO):
    """A file that tells at each read how much of it has been read; one of xz, which `xz` names, is one of few streams."""

    def __init__(self, descriptor: int, size: int, tell: Callable[[float], None], xz: str = ""):
        super().__init__(descriptor)
        self._size, self._progress = size, tell
        self._xz, self._streams = xz, 0

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        if self._xz:
            self._streams += bytes(buffer[:count]).count(_STREAM)
            if self._streams > MAX_STREAMS:
                raise Refused(f"{self._xz} is packed in more than {MAX_STREAMS:,} pieces; unpack it and pack it again")
        self._progress(self.tell() / max(1, self._size))
        return count


class _Bounded(io.RawIOBase):
    """A stream that returns at most that many bytes."""

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
