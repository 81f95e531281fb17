"""Versions of a kernel's files: the text, the verdict and the time of each save that was judged, so that one can go back."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused, refusing
from fwtui.common.text import clean
from fwtui_kernels.own import files_of

FOLDER = "versions"
MOST, MOST_BYTES = 100, 2**20  # that are kept of one file, the last ones
SUFFIX = ".json"


class Version(Struct, frozen=True, kw_only=True):
    """One save."""

    number: int
    saved: str  # when it was judged, in local time
    texts: dict[str, str]  # by suffix: of the file and of those beside it
    verdict: str
    right: bool
    seconds: float | None = None  # of one pass; None if nothing was timed
    n: int = 0
    where: str = ""  # the device and the tile: times of others are not compared

    def comparable(self, other: Version) -> bool:
        return self.right and self.seconds is not None and (self.n, self.where) == (other.n, other.where)


def texts_of(path: Path) -> dict[str, str]:
    """What the files of the kernel say now. Raises Refused."""
    texts: dict[str, str] = {}
    for file in files_of(path):
        cannot, way = f"no version of {clean(file.name)} can be kept", "correct that, and save it again"
        try:
            with refusing(cannot, way):
                texts[file.suffix] = file.read_bytes().decode()
        except UnicodeDecodeError:
            raise Refused(f"{cannot}: it is not UTF-8; {way}") from None
    return texts


class Versions:
    """Those of one file, oldest first; a folder of files, one each."""

    def __init__(self, path: Path, most: int = MOST, most_bytes: int = MOST_BYTES):
        self._path, self._most, self._most_bytes = path, most, most_bytes
        key = zlib.crc32(os.fsencode(path))
        self.folder = platformdirs.user_state_path("fwtui") / FOLDER / f"{path.stem[:40]}-{key:08x}"

    def all(self) -> list[Version]:
        """What cannot be read is left out."""
        versions: list[Version] = []
        for file in self._files():
            with suppress(OSError, msgspec.MsgspecError):
                versions.append(msgspec.json.decode(file.read_bytes(), type=Version))
        return versions

    def add(self, version: Version) -> Version:
        """Keep it under the next number; the last one's, where the text is still the same. Raises Refused."""
        last = next(iter(self.all()[-1:]), None)
        again = last is not None and last.texts == version.texts
        newest = max((int(file.stem) for file in self._files()), default=0)  # also of those that cannot be read
        number = last.number if last is not None and again else newest + 1
        version = msgspec.structs.replace(version, number=number)
        with refusing(f"versions cannot be kept in {clean(self.folder.name)}"):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with whole_file(self.folder / f"{number:08d}{SUFFIX}", "kept", "make room") as file:
            file.write(msgspec.json.encode(version))
        self._tidy()
        return version

    def keep_unjudged(self) -> None:
        """Keep what the files say now, where no version does. Raises Refused."""
        if self._path.exists():
            texts = texts_of(self._path)
            if all(version.texts != texts for version in self.all()):
                self.add(Version(number=0, saved=now(), texts=texts, verdict="not judged", right=False))

    def back(self, number: int) -> Version:
        """Let the files say again what they said in that version; what they say now becomes one, too. Raises Refused."""
        versions = {version.number: version for version in self.all()}
        if number not in versions:
            hint = f"kept are {', '.join(map(str, versions))}" if versions else "`fwtui watch` keeps each save that it judges"
            raise Refused(f"there is no version {number} of {clean(self._path.name)}; {hint}")
        self.keep_unjudged()
        for suffix, text in versions[number].texts.items():
            with whole_file(self._path.with_suffix(suffix)) as file:
                file.write(text.encode())
        return versions[number]

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return sorted(file for file in self.folder.iterdir() if file.suffix == SUFFIX and file.stem.isdecimal())
        return []

    def _tidy(self) -> None:
        files = self._files()
        with suppress(OSError):
            room = self._most_bytes
            for place, file in enumerate(reversed(files)):
                room -= file.stat().st_size
                if place and (place >= self._most or room < 0):
                    file.unlink()


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def curve(versions: list[Version]) -> list[tuple[int, float | None]]:
    """The times of those that can be compared with the last one, by number; None if one was not right."""
    last = next((version for version in reversed(versions) if version.seconds is not None), None)
    if last is None:
        return []
    return [(one.number, one.seconds if one.comparable(last) else None) for one in versions]
