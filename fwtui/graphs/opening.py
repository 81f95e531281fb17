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
MOST_EXPANSION = 200  # times the packed size: text is packed to a tenth, a bomb to a thousandth
_ALWAYS = 1 << 20  # bytes that any packed file may unpack to
_UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def opened(path: str, name: str, max_bytes: int) -> Iterator[tuple[io.BufferedReader[Any], int]]:
    """The file and its size in bytes (an upper bound if packed); a byte order mark is skipped.

    Raises Refused if it is not a regular file, cannot be read, is damaged, or has more than max_bytes.
    """
    try:
        # without O_NONBLOCK a FIFO would block forever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise Refused(f"{name!r} is not a path; remove the zero bytes") from None
    except OSError as error:
        raise _unreadable(name, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"{name} is not a regular file; give a graph file")
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > max_bytes:
            raise Refused(f"{name} has {size:,} bytes, more than {max_bytes:,}; choose a smaller graph")
        unpack = _UNPACK.get(Path(path).suffix.lower())
        try:
            if unpack is not None:
                size = min(max_bytes, MOST_EXPANSION * size + _ALWAYS)
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


class _Bounded(io.RawIOBase):
    """A stream that returns at most that many bytes."""

    def __init__(self, stream: IO[bytes], most: int, name: str):
        self._stream = stream
        self._left = self._most = most
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise Refused(f"{self._name} unpacks to more than {self._most:,} bytes; unpack it first, or choose a smaller graph")
        buffer[: len(data)] = data
        return len(data)


def _unreadable(name: str, error: OSError) -> Refused:
    return Refused(f"{name} cannot be read: {error.strerror or str(error).lower()}; check the path and its permissions")
