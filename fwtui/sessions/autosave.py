"""Automatic saving of the dashboard's last sessions with a finished run, in a separate folder."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fwtui.common.errors import Refused
from fwtui.sessions.folders import SUFFIX, files_in, kept_folder, make, own_folder
from fwtui.sessions.recorder import Recorder, in_use, safe_slug
from fwtui.stream import codec, events
from fwtui.stream.codec import Line

MAX, MAX_BYTES = 20, 200 * 10**6  # limits for all saved sessions together
YOUNG = 60.0  # seconds: a new file may be about to be locked


class Keeper(Recorder):
    """A recorder of every telemetry sample of a run and one a second between runs, up to the size limit."""

    def __init__(self, path: Path, *arguments: Any) -> None:
        self.limited = path.parent == kept_folder()  # the user has not named it
        self.most_bytes = MAX_BYTES
        self._running = False
        self._seconds: dict[int, int] = {}  # key: GPU; the second of its last recorded sample between runs
        super().__init__(path, *arguments)

    def write(self, line: Line) -> None:
        match line.event:
            case events.RunStarted():
                self._running = True
            case events.RunDone() | events.Fault(run=int()):
                self._running = False
            case events.Telemetry(t=t, gpu=gpu) if not self._running:
                before, self._seconds[gpu] = self._seconds.get(gpu), int(t)
                if before == int(t):
                    return
        if self.limited and self.bytes + len(line.raw) > self.most_bytes:
            self._fail(OSError(0, f"it has {self.most_bytes // 10**6} MB, the limit"))
        super().write(line)


def keep(header: events.Header | Line, preface: Iterable[Line]) -> Keeper:
    """Start to save a session. Raises Refused on a disk error."""
    return Keeper.at(None, header, preface, kept_folder())


def path_named(title: str) -> Path:
    """Return the path of a session with this title; make its folder. Raises Refused."""
    make(own_folder())
    return own_folder() / f"{safe_slug(title)}{SUFFIX}"


def named(recorder: Recorder, title: str) -> Keeper:
    """Replace a recording by one with this title that contains its events, and return it. Raises Refused."""
    from fwtui.sessions.markers import retitled  # late import, for the time to the first frame
    from fwtui.sessions.reader import open_session

    path = path_named(title)
    with open_session(recorder.path) as session:
        lines = session.lines()  # one at a time: in memory, a long session is several times its file
        raw = retitled(next(lines).raw, title)
        new = _whole(Keeper.at(path, Line(raw, codec.decode(raw)), lines))
    new.began = recorder.began
    recorder.discard()
    return new


def tidy(most: int = MAX, most_bytes: int = MAX_BYTES) -> None:
    """Delete sessions beyond the limits, oldest first, and those without a finished run, unless they are in use."""
    size = 0
    for place, path in enumerate(sorted(files_in(kept_folder()), key=_changed, reverse=True)):
        with suppress(OSError):
            size += path.stat().st_size
            beyond = place >= most or size > most_bytes
            if (beyond or (time.time() - _changed(path) > YOUNG and not _worth(path))) and not in_use(path):
                path.unlink()


def _whole(copy: Keeper) -> Keeper:
    """Return a complete copy of a session, else delete it. Raises Refused if it could not be written; the original stays."""
    if copy.failure is not None:
        copy.discard()
        raise Refused(f"{copy.failure}; free some space, and try again")
    return copy


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _worth(path: Path) -> bool:
    """Return whether a session has a finished run; a file that cannot be read to its end counts as one."""
    from fwtui.sessions.reader import open_session

    with suppress(Refused), open_session(path) as session:
        recorded = (line.event for line in session.lines())
        return any(isinstance(event, events.RunDone) and event.outcome == "done" for event in recorded) or session.condition.cut
    return True
