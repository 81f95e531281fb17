"""The sessions that are here: those that ship with the program and the user's own."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fwtui.common.errors import Refused, why
from fwtui.common.text import clean
from fwtui.sessions.folders import SUFFIX, own_folder, shipped_folder
from fwtui.sessions.reader import Condition, TooNew, load, open_session
from fwtui.sessions.summary import summarise
from fwtui.stream.events import Header
from fwtui.stream.model import Model

_MOST_NAMED = 12
SHIPPED, OWN = "shipped", "own"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file in the library; `problem` says in words why it cannot be replayed, or not to its end."""

    path: Path
    origin: str  # SHIPPED or OWN
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
    def own(self) -> bool:
        """It is the user's and may be changed."""
        return self.origin == OWN

    @property
    def title(self) -> str:
        return self.header.title if self.header else ""

    @property
    def created(self) -> str:
        """ISO 8601, UTC; empty where nobody can tell."""
        return self.header.created if self.header else ""

    @property
    def machine(self) -> str:
        """Its processor."""
        return self.header.machine.cpu if self.header else ""

    @property
    def state(self) -> str:
        """Complete, or what is wrong."""
        return self.problem or ("complete" if self.complete else "incomplete")

    @property
    def name(self) -> str:
        """What resolve() takes: the file's name without its suffix."""
        return clean(_stem(self.path))


Known = MutableMapping[tuple[Path, int, int], Entry]  # by path, size, and when it was changed


def find(known: Known | None = None) -> list[Entry]:
    """Every session in the library, newest first. A broken one is an entry with its problem; nothing is raised.

    What is in `known` and has not changed since is not read again.
    """
    entries = [_known_entry(path, origin, known if known is not None else {}) for path, origin in _files()]
    return sorted(entries, key=lambda entry: (entry.header.created if entry.header else "", entry.path.name), reverse=True)


def _known_entry(path: Path, origin: str, known: Known) -> Entry:
    try:
        status = path.lstat()
    except OSError:  # gone meanwhile: reading says so
        return _entry(path, origin)
    key = (path, status.st_size, status.st_mtime_ns)
    if key not in known:
        known[key] = _entry(path, origin)
    return known[key]


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
        raise Refused(f"{clean(name)!r} begins the names of {len(matches)} sessions; choose one of {some(matches)}")
    if not known:
        raise Refused(f"there is no session {clean(name)!r}, and none in {own_folder()}; give the path of a session file")
    raise Refused(f"there is no session {clean(name)!r}; give a path or choose one of {some(sorted(known, reverse=True))}")


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


def _files() -> Iterator[tuple[Path, str]]:
    for folder, origin in ((shipped_folder(), SHIPPED), (own_folder(), OWN)):
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
    return Entry(
        path=path,
        origin=origin,
        size=size,
        header=summary.header,
        runs=summary.runs,
        kernels=summary.kernels,
        sizes=summary.sizes,
        best_rate=summary.best_rate,
        duration=condition.duration,
        complete=condition.complete,
        gpu=summary.gpu,
        problem=_problem(condition),
    )


def _problem(c: Condition) -> str:
    if c.damaged:
        return f"{c.damaged} damaged line{'' if c.damaged == 1 else 's'} left out"
    if not c.closed:
        return "incomplete"
    return f"{c.dropped} events dropped" if c.dropped else ""


def some(words: Sequence[str], most: int = _MOST_NAMED) -> str:
    """The first of them with commas, safe to show."""
    more = ", …" if len(words) > most else ""
    return ", ".join(clean(word) for word in words[:most]) + more


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)
