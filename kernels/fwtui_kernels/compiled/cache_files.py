"""Checksums of cache files: a file that a power cut or a disk has damaged counts as missing, so that it is compiled again.

A file of this program begins with its checksum. Numba's files of a function share one checksum, in a separate file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fwtui_kernels.regular_file import read_regular

MAX_BYTES = 16 << 20  # a larger file is not a cache file
_DIGEST = hashlib.sha256().digest_size
_SEAL = "seal"  # suffix of the file with the checksum of numba's files of a function
_NUMBA = (".nbi", ".nbc")  # suffixes of numba's index of a function, and of its code for one signature


def sealed(name: str, data: bytes) -> bytes:
    """Return the data with a checksum of the data and the file name, which unsealed() verifies."""
    return hashlib.sha256(name.encode() + b"\0" + data).digest() + data


def unsealed(path: Path, name: str, private: bool = False) -> bytes | None:
    """Return the data of a sealed file; None if it is missing, damaged, or rejected by read_regular()."""
    with suppress(OSError):
        contents = read_regular(path, MAX_BYTES, private)
        if contents == sealed(name, contents[_DIGEST:]):
            return contents[_DIGEST:]
    return None


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only this user can read. Raises OSError, and then leaves the old file and no other."""
    import tempfile  # slow to import, and only for new files

    number, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


@contextmanager
def sealed_function(folder: Path, prefix: str) -> Iterator[None]:
    """Remove numba's files of a function if they do not match their checksum, and write the checksum after the block.

    The names of the files begin with `prefix`. Nothing else may write to them during the block.
    """
    if not _intact(folder, prefix):
        for path in (*_files(folder, prefix), folder / f"{prefix}{_SEAL}"):
            _remove(path)
    yield
    if not _intact(folder, prefix):
        with suppress(OSError):  # files without a checksum are removed and compiled again
            replace_file(folder / f"{prefix}{_SEAL}", _digest(folder, prefix))


def damaged_functions(folder: Path) -> int:
    """Return the number of functions in numba's cache folder whose files do not match their checksum."""
    functions = {(path.parent, f"{path.name.rpartition('.py')[0]}.") for path in folder.rglob("*.nbi")}
    return sum(not _intact(*function) for function in functions)


def _remove(path: Path) -> None:
    """Remove a file, or the folder in its place."""
    with suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def _files(folder: Path, prefix: str) -> list[Path]:
    with suppress(OSError):
        return sorted(folder / name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_NUMBA))
    return []


def _intact(folder: Path, prefix: str) -> bool:
    """Return True if numba's files of a function match their checksum, or if there are none."""
    if not _files(folder, prefix):
        return True
    with suppress(OSError):
        return read_regular(folder / f"{prefix}{_SEAL}", _DIGEST) == _digest(folder, prefix)
    return False


def _digest(folder: Path, prefix: str) -> bytes:
    """Return a digest of numba's files of a function and their names. Raises OSError if one of them cannot be read."""
    digest = hashlib.sha256()
    for path in _files(folder, prefix):
        digest.update(sealed(path.name, read_regular(path, MAX_BYTES)))
    return digest.digest()
