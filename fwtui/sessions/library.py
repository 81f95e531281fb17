"""The sessions that are here: those that ship with the program and the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fwtui import units
from fwtui.errors import Refused
from fwtui.events import Header
from fwtui.model import Model
from fwtui.sessions.folders import SUFFIX, own_folder, shipped_folder, why
from fwtui.sessions.reader import TooNew, load, open_session
from fwtui.sessions.summary import summarise
from fwtui.text import clean

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One file in the library; `problem` says in words why it cannot be replayed, or not to its end."""

    path: Path
    origin: str  # "shipped" | "own"
    size: int = 0  # bytes
    header: Header | None = None
    runs: int = 0
    kernels: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()  # vertices
    best_rate: float | None = None  # relaxations per second, of verified runs
    duration: float = 0.0  # seconds
    complete: bool = False
    gpu: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        """What resolve() takes: the file's name without its suffix."""
        return clean(_stem(self.path))


def find() -> list[Entry]:
    """Every session in the library, newest first. A broken one is an entry with its problem; nothing is raised."""
    entries = [_entry(path, origin) for path, origin in _files()]
    return sorted(entries, key=lambda entry: (entry.header.created if entry.header else "", entry.path.name), reverse=True)


def resolve(name: str) -> Path:
    """The file that a user means: a path, a session's name, or a beginning that only one name has."""
    if "/" in name or Path(name).is_file():
        return Path(name)
    known = {_stem(path): path for path, _ in _files()}
    wanted = name.removesuffix(SUFFIX)
    if wanted in known:
        return known[wanted]
    matches = sorted(stem for stem in known if wanted and stem.startswith(wanted))
    if len(matches) == 1:
        return known[matches[0]]
    if matches:
        raise Refused(f"{clean(name)!r} begins the names of {len(matches)} sessions; choose one of {_some(matches)}")
    if not known:
        raise Refused(f"there is no session {clean(name)!r}, and none in {own_folder()}; give the path of a session file")
    raise Refused(f"there is no session {clean(name)!r}; give a path or choose one of {_some(sorted(known, reverse=True))}")


def paths(most: int = 50) -> list[Path]:
    """Session files that are here, the user's own before those that ship, newest name first; only names are looked at."""
    found: list[Path] = []
    for folder in (own_folder(), shipped_folder()):
        with suppress(OSError):
            found += sorted(folder.glob(f"*{SUFFIX}"), reverse=True)[:most]
    return found


def load_model(path: Path) -> tuple[Model, bool]:
    """Everything that a session tells, and whether it is complete. Raises Refused for what is no session."""
    loaded = load(path)
    model = Model()
    for line in loaded.lines:
        model.apply(line.event)
    return model, loaded.complete


def print_list(out: TextIO) -> None:
    """The library as a table in aligned columns."""
    entries = find()
    if not entries:
        print(f"There are no sessions yet; recordings go to {clean(str(own_folder()))}.", file=out)
        return
    rows = [("NAME", "FROM", "RUNS", "KERNELS", "N", "BEST", "GPU", "LENGTH", "SIZE", "")]
    rows += [_row(entry) for entry in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), file=out)


def _files() -> Iterator[tuple[Path, str]]:
    for folder, origin in ((shipped_folder(), "shipped"), (own_folder(), "own")):
        try:
            paths = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))
        except OSError:  # the user's folder comes with the first recording
            continue
        for path in paths:
            yield path, origin


def _entry(path: Path, origin: str) -> Entry:
    size = 0
    try:
        size = path.lstat().st_size
        with open_session(path) as session:
            summary = summarise(session)
    except TooNew as refusal:
        return Entry(path, origin, size, refusal.header, problem=f"format version {refusal.header.version} needs a newer fwtui")
    except Refused as refusal:
        return Entry(path, origin, size, problem=str(refusal).removeprefix(f"{clean(str(path))} "))
    except OSError as error:
        return Entry(path, origin, problem=why(error))
    condition = summary.condition
    dropped = condition.end.dropped if condition.end else 0
    return Entry(
        path=path,
        origin=origin,
        size=size,
        header=summary.header,
        runs=summary.runs,
        kernels=tuple(summary.kernels),
        sizes=tuple(summary.sizes),
        best_rate=summary.best_rate,
        duration=condition.duration,
        complete=condition.closed and not dropped,
        gpu=summary.gpu,
        problem=_problem(condition.damaged, condition.closed, dropped),
    )


def _problem(damaged: int, closed: bool, dropped: int) -> str:
    if damaged:
        return f"{damaged} damaged line{'' if damaged == 1 else 's'} left out"
    if not closed:
        return "incomplete"
    return f"{dropped} events dropped" if dropped else ""


def _row(entry: Entry) -> tuple[str, ...]:
    size = f"{entry.size / 1000:,.1f} kB"
    if not entry.header or not entry.runs:
        return (entry.name, entry.origin, "", "", "", "", entry.gpu, "", size, entry.problem)
    return (
        entry.name,
        entry.origin,
        str(entry.runs),
        _some(entry.kernels, 3),
        _some([str(n) for n in entry.sizes], 3),
        units.rate(entry.best_rate) if entry.best_rate else "",
        entry.gpu,
        units.clock(entry.duration),
        size,
        entry.problem,
    )


def _some(words: list[str] | tuple[str, ...], most: int = _MOST_NAMED) -> str:
    more = ", ..." if len(words) > most else ""
    return ", ".join(clean(word) for word in words[:most]) + more


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)
