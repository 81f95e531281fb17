"""The library of shipped sessions and the user's own, with the columns, order and filter of its table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from fwtui.common import gc_pause, units
from fwtui.common.errors import Refused, as_refused, os_error_reason
from fwtui.common.small_file import file_version
from fwtui.common.text import quoted, sanitise, suggest, truncate
from fwtui.sessions.folders import AUTOSAVED, SUFFIX, bare, files_in, kept_folder, own_folder, shipped_folder, stem
from fwtui.sessions.reader import Condition, SessionFile, TooNew, open_session
from fwtui.sessions.recorder import in_use, safe_slug
from fwtui.stream.codec import Line
from fwtui.stream.events import Device, Header, Planned, RunDone, RunStarted, Verdict
from fwtui.stream.model import Model

_MAX_NAMED = 12
_KEPT_OFFERED = 5
_FOLDED = (Device, RunStarted, Planned, Verdict, RunDone)  # the events that the model of a summary needs
LADDER = "h200-ladder-n4096.fwt.jsonl.gz"
SHIPPED, OWN = "shipped", "own"  # or AUTOSAVED
_offered: tuple[Path, ...] | None = None  # the user's sessions that a read-only program may open; None: all sessions and files
ENTRY_COLUMNS = ("name", "from", "date", "machine", "GPU", "runs", "kernels", "n", "best", "length", "size", "state")
RIGHT = frozenset({"runs", "best", "length", "size"})  # right-aligned
MACHINE_CELLS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A summary of a session; kernels and sizes in order of appearance, each once."""

    header: Header | None = None
    condition: Condition = field(default_factory=Condition)
    runs: int = 0
    kernels: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()  # vertices
    best_rate: float | None = None  # relaxations per second, of verified runs
    gpu: str = ""

    @property
    def title(self) -> str:
        return self.header.title if self.header else ""

    @property
    def created(self) -> str:
        """Return the time of recording in ISO 8601, UTC; empty if unknown."""
        return self.header.created if self.header else ""

    @property
    def machine(self) -> str:
        """The processor of its machine."""
        return self.header.machine.cpu if self.header else ""


@dataclass(frozen=True, slots=True)
class LibraryEntry(SessionSummary):
    """A file in the library; `problem` states why it cannot be replayed, or only in part."""

    path: Path
    origin: str  # SHIPPED, OWN or AUTOSAVED
    size: int = 0  # bytes
    problem: str = ""

    @property
    def own(self) -> bool:
        """Return whether the session belongs to the user and may be changed."""
        return self.origin != SHIPPED

    @property
    def stays(self) -> str:
        """Return the reason why the user cannot change the session; empty if there is none."""
        return "" if self.own else "came with fwtui and cannot be changed"

    @property
    def complete(self) -> bool:
        return self.condition.complete

    @property
    def state(self) -> str:
        """Return "complete" or the problem."""
        return self.problem or ("complete" if self.complete else "incomplete")

    @property
    def name(self) -> str:
        """Return the name for resolve(): the file name without its suffix."""
        return sanitise(stem(self.path))


def offer_only(paths: Sequence[Path]) -> None:
    """Restrict the library to these sessions and the shipped ones; resolve() then rejects all other paths."""
    global _offered
    _offered = tuple(path for path in paths if path not in files_in(shipped_folder()))


EntryCache = MutableMapping[Path, tuple[tuple[int, ...], LibraryEntry]]  # path -> version of the file, entry


def find(cache: EntryCache | None = None) -> list[LibraryEntry]:
    """Return every session in the library, newest first. A broken session is an entry with its problem.

    Unchanged files in `cache` are not read again.
    """
    entries = [_entry(path, origin, {} if cache is None else cache) for path, origin in files_by_origin()]
    return sorted(entries, key=lambda entry: (entry.created, entry.path.name), reverse=True)


def resolve(name: str) -> Path:
    """Return the file of a path, with or without .fwt.jsonl, of a session's name or title, or of a prefix. Raises Refused."""
    if _offered is None and ("/" in name or os.path.isfile(name)):  # pathlib raises for a name that is too long
        return Path(name)
    if Path(name) in (path for path, _ in files_by_origin()):
        return Path(name)
    paths_by_stem = {stem(path): path for path, _ in files_by_origin()}
    slug = bare(name)
    if path := paths_by_stem.get(slug) or paths_by_stem.get(safe_slug(slug)):
        return path
    matches = sorted(there for there in paths_by_stem if slug and there.startswith(slug))
    if len(matches) == 1:
        return paths_by_stem[matches[0]]
    if _offered is None and os.path.isfile(name + SUFFIX):
        return Path(name + SUFFIX)
    if matches:
        raise Refused(f"{quoted(name)} is the beginning of {len(matches)} session names; choose one of {some(matches)}")
    if not paths_by_stem:
        raise Refused(f"there is no session {quoted(name)}, and none in {own_folder()}; pass the path of a session file")
    hint = suggest(slug, paths_by_stem)
    offered = hint if hint.endswith("?") else f"pass a path or choose one of {some(sorted(paths_by_stem, reverse=True))}"
    raise Refused(f"there is no session {quoted(name)}; {offered}")


def paths(most: int = 50) -> list[Path]:
    """Return session files: the user's own, those saved automatically, the shipped ones; of each the newest first.

    Only names, times and locks are read, not the sessions.
    """
    if _offered is not None:
        return [*_offered[:most], *files_in(shipped_folder())[::-1][:most]]
    folders = own_folder(), kept_folder(), shipped_folder()
    users, autosaved, shipped = (files_in(folder)[::-1] for folder in folders)
    users = sorted(users, key=lambda path: path.lstat().st_mtime if os.path.exists(path) else 0.0, reverse=True)[:most]
    return [*users, *[path for path in autosaved[: _KEPT_OFFERED + 1] if not in_use(path)][:_KEPT_OFFERED], *shipped[:most]]


def delete(path: Path) -> None:
    """Delete one of the user's own sessions. Raises Refused for a shipped session and for an error of the system."""
    name = sanitise(stem(path))
    if os.path.realpath(path.parent) not in map(os.path.realpath, (own_folder(), kept_folder())):
        raise Refused(f"{name} is not in your data folder and cannot be deleted here; delete its file")
    with as_refused(f"{name} cannot be deleted", "check the permissions of its folder"):
        path.unlink()


def load_model(path: Path) -> tuple[Model, bool]:
    """Return the model of a session, and whether it is complete. Raises Refused if it is not a session."""
    with open_session(path) as session:
        return model_of(session.lines()), session.condition.complete


def model_of(lines: Iterable[Line]) -> Model:
    """Return the model of a session's lines."""
    model = Model()
    with gc_pause.paused():
        for line in lines:
            model.apply(line.event)
    return model


def recorded_on(header: Header, gpu: str) -> str:
    """Format the origin of a session: recorded on NVIDIA H200 · 2025-11-20. `gpu` is empty without a GPU."""
    return f"recorded on {gpu or header.machine.cpu or 'a machine without a GPU'} · {header.created[:10]}"


def recorded_ladder() -> Model | None:
    """Return the shipped session with every rung on one graph and one GPU; None if it cannot be read."""
    return _ladder_in(shipped_folder())


@cache
def _ladder_in(folder: Path) -> Model | None:
    try:
        return load_model(folder / LADDER)[0]
    except (Refused, OSError):
        return None


def files_by_origin() -> list[tuple[Path, str]]:
    folders = ((shipped_folder(), SHIPPED), (own_folder(), OWN), (kept_folder(), AUTOSAVED))
    if _offered is not None:
        return [*((path, SHIPPED) for path in files_in(shipped_folder())), *((path, OWN) for path in _offered)]
    there = [(path, origin) for folder, origin in folders for path in files_in(folder)]
    return [(path, origin) for path, origin in there if origin != AUTOSAVED or not in_use(path)]


def summarise(session: SessionFile) -> SessionSummary:
    """Read all of an open session; only the events that the summary needs stay in memory."""
    model = Model(live=True)
    for event in (line.event for line in session.lines() if isinstance(line.event, _FOLDED)):
        model.apply(event)
    runs = model.runs.values()
    return SessionSummary(
        header=session.header,
        condition=session.condition,
        runs=len(runs),
        kernels=tuple(dict.fromkeys(run.experiment.kernel for run in runs)),
        sizes=tuple(dict.fromkeys(run.n for run in runs if run.padded)),
        best_rate=max((run.rate for run in runs if run.verified and run.rate), default=None),
        gpu=next((device.name for device in [*model.devices.values()][::-1] if device.name), ""),
    )


def _entry(path: Path, origin: str, cache: EntryCache) -> LibraryEntry:
    try:
        status = path.stat()
    except OSError as error:
        return LibraryEntry(path, origin, problem=os_error_reason(error))
    changed, entry = cache.get(path, (None, None))
    if entry is None or changed != file_version(status):
        entry = _read(path, origin, status.st_size)
        cache[path] = file_version(status), entry
    return entry


def _read(path: Path, origin: str, size: int) -> LibraryEntry:
    try:
        with open_session(path) as session:
            summary = summarise(session)
    except TooNew as refusal:
        newer = f"format version {refusal.header.version} needs a newer fwtui"
        return LibraryEntry(path, origin, size, newer, header=refusal.header)
    except Refused as refusal:
        return LibraryEntry(path, origin, size, str(refusal).removeprefix(f"{sanitise(str(path))} "))
    values = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return LibraryEntry(path, origin, size, ", ".join(summary.condition.faults), **values)


def some(names: Sequence[str], most: int = _MAX_NAMED) -> str:
    """Return the first names, separated by commas and safe to print."""
    more = ", …" if len(names) > most else ""
    return ", ".join(sanitise(name) for name in names[:most]) + more


# column -> sort key, and True for descending order
ORDERS: dict[str, tuple[Callable[[LibraryEntry], Any], bool]] = {
    "date": (lambda entry: (entry.created, entry.name), True),
    "name": (lambda entry: entry.name.lower(), False),
    "kernels": (lambda entry: (not entry.kernels, entry.kernels), False),
    "n": (lambda entry: max(entry.sizes, default=0), True),
    "best": (lambda entry: entry.best_rate or 0.0, True),
    "length": (lambda entry: entry.condition.duration, True),
    "state": (lambda entry: (entry.complete, entry.state), False),
}


def entry_cells(entry: LibraryEntry) -> dict[str, str]:
    """Return a session's cells by column, safe to print; empty if unknown."""
    played = bool(entry.header and entry.runs)
    return {
        "name": entry.name,
        "from": entry.origin,
        "date": entry.created[:10],
        "machine": truncate(entry.machine, MACHINE_CELLS),
        "GPU": entry.gpu,
        "runs": str(entry.runs) if entry.runs else "",
        "kernels": some(entry.kernels, 3),
        "n": _sizes(entry.sizes),
        "best": units.rate(entry.best_rate) if entry.best_rate else "",
        "length": units.clock(entry.condition.duration) if played else "",
        "size": units.memory(entry.size),
        "state": entry.state,
    }


def ordered(entries: Iterable[LibraryEntry], by: str) -> list[LibraryEntry]:
    """Sort entries by one of ORDERS; equal entries stay newest first."""
    key, greatest_first = ORDERS[by]
    newest_first = sorted(entries, key=ORDERS["date"][0], reverse=True)
    return sorted(newest_first, key=key, reverse=greatest_first)


def matching(entries: Iterable[LibraryEntry], query: str) -> list[LibraryEntry]:
    """Return the entries that contain all terms of the query, in name, title, machine, GPU, kernels, sizes, date or state."""
    terms = query.lower().split()
    return [entry for entry in entries if all(word in _searchable(entry) for word in terms)]


def _searchable(entry: LibraryEntry) -> str:
    sizes = " ".join(map(str, entry.sizes))
    texts = (entry.name, entry.title, entry.origin, entry.created, entry.machine, entry.gpu, *entry.kernels, sizes, entry.state)
    return " ".join(texts).lower()


def _sizes(sizes: Sequence[int]) -> str:
    """Format one size, or the smallest and the largest in the syntax of a sweep: 512..32768."""
    least, most = min(sizes, default=0), max(sizes, default=0)
    return (str(most) if least == most else f"{least}..{most}") if most else ""
