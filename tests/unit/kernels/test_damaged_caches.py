"""Damaged cache files, and small files that have become something else."""

import os
import resource
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from fwtui_kernels.compiled.cache_files import damaged_functions, sealed, unsealed
from fwtui_kernels.own import defines_kernel, fingerprint
from fwtui_kernels.regular_file import read_regular


def added(value: int) -> int:
    return value + 7


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes().ljust(20))  # a lock is empty
    data[place] ^= 1
    path.write_bytes(data)


def replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: (path.unlink(missing_ok=True), make(path))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "random": lambda path: path.write_bytes(b"\x93\x01not a pickle" * 9),
    "flipped": lambda path: flip(path, -20),
    "missing": Path.unlink,
    "a pipe": replaced(os.mkfifo),
    "endless": replaced(lambda path: path.symlink_to("/dev/zero")),
    "a folder": replaced(lambda path: (path / "inside").mkdir(parents=True)),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return numba's cache folder with the code of `added`."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numba.config.CACHE_DIR", str(folder))
        assert not loaded() and loaded() and not damaged_functions(folder)
    return folder


@pytest.fixture
def cache(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the cache folder, which numba uses until the test ends."""
    folder = shutil.copytree(compiled, tmp_path / "cache")
    monkeypatch.setattr("numba.config.CACHE_DIR", str(folder))
    return folder


def loaded() -> bool:
    """Call `added` as a new process would; return whether its code came from the cache."""
    from fwtui_kernels.compiled import locked_njit

    dispatcher = locked_njit.njit(cache=True)(added)
    assert dispatcher(5) == 12
    return bool(dispatcher.stats.cache_hits)


# one checksum covers all three files: every damage to the code, and two to each of the others; the rest wait for -m slow
DAMAGED = [
    pytest.param(suffix, damage, marks=() if suffix == "nbc" or damage in ("flipped", "missing") else pytest.mark.slow)
    for suffix, damage in product(("nbi", "nbc", "seal"), DAMAGES)
]


@pytest.mark.parametrize(("suffix", "damage"), DAMAGED)
def test_a_damaged_file_of_numba_is_a_miss_and_is_made_again(cache: Path, suffix: str, damage: str) -> None:
    (path,) = cache.rglob(f"*.{suffix}")
    DAMAGES[damage](path)
    assert damaged_functions(cache) == (0 if (suffix, damage) == ("nbi", "missing") else 1)
    assert not loaded() and loaded() and not damaged_functions(cache)


@pytest.mark.parametrize("damage", ["a pipe", "endless", "a folder"])
def test_code_is_loaded_without_a_lock(cache: Path, damage: str) -> None:
    (path,) = cache.rglob("*.lock")
    DAMAGES[damage](path)
    assert loaded()


@pytest.mark.parametrize("limit", [0, 100, 2000])  # bytes: no file, an index cut off, code cut off
def test_a_cache_that_cannot_be_written_is_a_miss(cache: Path, limit: int) -> None:
    for path in cache.iterdir():
        shutil.rmtree(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        assert not loaded()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not loaded() and loaded() and not damaged_functions(cache)


def test_numba_caches_nothing_without_a_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    assert not loaded() and not loaded()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_sealed_file_is_missing(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "facts"
    path.write_bytes(sealed("facts", bytes(100)))
    assert unsealed(path, "facts") == bytes(100) and unsealed(path, "others") is None
    DAMAGES[damage](path)
    assert unsealed(path, "facts") is None


@pytest.mark.parametrize("what", ["a pipe", "endless", "a folder", "large", "missing"])
def test_only_small_regular_files_are_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "mine.py"
    if what == "large":
        path.write_bytes(bytes(2**20 + 1))
    elif what != "missing":
        DAMAGES[what](path)
    before = len(os.listdir("/dev/fd"))
    for read in (lambda: read_regular(path, 2**20), lambda: fingerprint(path)):
        with pytest.raises(OSError):
            read()
    assert len(os.listdir("/dev/fd")) == before
    assert not defines_kernel(path)
