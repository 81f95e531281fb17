"""Seals on cache files: a file that a power cut or a disk has damaged counts as missing, and its contents are made again.

A file of this program carries its seal. Numba's files of a function share one seal, in a file beside them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fwtui_kernels.regular_file import read_regular

MAX_BYTES = 16 << 20  # of a file; a larger one is not a cache file
_DIGEST = hashlib.sha256().digest_size
_SEAL = "seal"  # ends the name of the file that seals numba's files of a function
_NUMBA = (".nbi", ".nbc")  # its index of a function, and its code for one signature


def sealed(name: str, data: bytes) -> bytes:
    """Return the contents of a file that unsealed() accepts only under that name."""
    return hashlib.sha256(name.encode() + b"\0" + data).digest() + data


def unsealed(path: Path, name: str, private: bool = False) -> bytes | None:
    """Return the data in a sealed file; None if it is missing, damaged, or not what read_regular() reads."""
    with suppress(OSError):
        contents = read_regular(path, MAX_BYTES, private)
        if contents == sealed(name, contents[_DIGEST:]):
            return contents[_DIGEST:]
    return None


@contextmanager
def sealed_function(folder: Path, prefix: str) -> Iterator[None]:
    """Remove numba's files of a function if they do not match their seal, and seal those that are there after the block.

    The names of its files begin with `prefix`. Nothing else may write to them during the block.
    """
    if not _intact(folder, prefix):
        with suppress(OSError):
            for path in _files(folder, prefix):
                path.unlink(missing_ok=True)
    yield
    if not _intact(folder, prefix) and (digest := _digest(folder, prefix)) is not None:
        new = folder / f"{prefix}{os.getpid()}"
        with suppress(OSError):  # files without a seal are removed and made again
            new.write_bytes(digest)
            new.replace(folder / f"{prefix}{_SEAL}")


def damaged_functions(folder: Path) -> int:
    """Return how many functions in numba's cache folder have files that do not match their seal."""
    functions = {(path.parent, f"{path.name.rpartition('.py')[0]}.") for path in folder.rglob("*.nbi")}
    return sum(not _intact(*function) for function in functions)


def _files(folder: Path, prefix: str) -> list[Path]:
    with suppress(OSError):
        return sorted(folder / name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_NUMBA))
    return []


def _intact(folder: Path, prefix: str) -> bool:
    """Return whether numba's files of a function match their seal, as no files do."""
    if not _files(folder, prefix):
        return True
    with suppress(OSError):
        return read_regular(folder / f"{prefix}{_SEAL}", _DIGEST) == _digest(folder, prefix)
    return False


def _digest(folder: Path, prefix: str) -> bytes | None:
    """Return a digest of numba's files of a function and their names; None if one of them cannot be read."""
    digest = hashlib.sha256()
    with suppress(OSError):
        for path in _files(folder, prefix):
            digest.update(sealed(path.name, read_regular(path, MAX_BYTES)))
        return digest.digest()
    return None
