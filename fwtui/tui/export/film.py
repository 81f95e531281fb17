"""A film: the screens of a replay with their times, runs, markers and tables. Equal rows are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from fwtui.learn.questions import Cue, QuestionAnswer

SMALL = (60, 24)  # columns and rows of the screens for telephones, whose letters stay legible
SMALL_RATE = 0.2  # frames per second of these screens, without those of runs and markers


class FilmCut(NamedTuple):
    """The part of the session that a film shows, its speed and its frame rate."""

    begin: float = 0.0  # recorded seconds
    end: float = inf
    rate: float = 5.0  # frames per second of the film
    gap: float | None = 1.0  # maximum seconds without an event; longer gaps are shortened to it; None: no gap is shortened
    speed: float = 1.0  # seconds of the session per second of the film, outside of shortened gaps


class Ink(NamedTuple):
    """The style of characters. Colours are #rrggbb; dim and reverse are already applied to them."""

    colour: str
    ground: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False


class Span(NamedTuple):
    text: str
    ink: int  # index into Film.inks


Row = tuple[Span, ...]
Lines = tuple[int, ...]  # the rows of a screen from the top, as indices into Film.rows


class FilmFrame(NamedTuple):
    """A screen. `recorded` is its time in the session, `played` its time in the film, both in seconds."""

    recorded: float
    played: float
    lines: Lines
    key: bool = False  # True if a run begins or ends here or a marker is here; thinning keeps the frame


class FilmStretch(NamedTuple):
    """A run on the timeline; times are seconds of the film."""

    run: int
    title: str
    kernel: str
    outcome: str  # size, median time and outcome
    begin: float
    end: float
    recorded: tuple[float, float]  # begin and end in seconds of the session
    bad: bool


class FilmStop(NamedTuple):
    """A marker with its text or question, its screen, and the screen with the answer."""

    recorded: float
    played: float
    cue: Cue
    answer: QuestionAnswer | str | None
    lines: Lines
    answered: Lines  # empty without an answer


class FilmHotspot(NamedTuple):
    """A source line with its share of a phase's PC samples and the main stall reason."""

    phase: str
    place: str
    share: str
    reason: str
    text: str


class FilmWarps(NamedTuple):
    """The hotspots of a run."""

    run: int
    summary: str  # the run and its main stall reason
    lines: Sequence[FilmHotspot]


@dataclass(frozen=True, kw_only=True)
class Film:
    """Screens of `width` x `height` cells."""

    width: int
    height: int
    ground: str  # background colour
    dark: bool
    title: str
    origin: str
    problems: tuple[str, ...]
    inks: Sequence[Ink]
    rows: Sequence[Row]
    frames: Sequence[FilmFrame]
    duration: float  # of the film, seconds
    runs: Sequence[FilmStretch] = ()
    stops: Sequence[FilmStop] = ()
    directed: bool = False  # True for a lecture, which stops at its markers
    head: Sequence[str] = ()  # column titles of the table of runs
    numbers: frozenset[int] = frozenset()  # indices of the columns with numbers
    table: Sequence[Sequence[str]] = ()
    warps: Sequence[FilmWarps] = ()
    left_out: tuple[str, ...] = ()  # sentences about runs, markers and samples beyond the maximum
    small: Film | None = None  # the film with fewer and larger letters, for telephones

    @property
    def sizes(self) -> Sequence[Film]:
        return [self] if self.small is None else [self, self.small]

    def text(self, lines: Lines) -> str:
        """Return a screen as plain text, as `fwtui render` writes it."""
        return "\n".join(row_text(self.rows[line]) for line in lines).rstrip("\n") + "\n"

    def thinned(self) -> Film:
        """Return the film without every other frame at which no run begins or ends and no marker is; the last frame stays."""
        last = len(self.frames) - 1
        plain = [place for place, frame in enumerate(self.frames[1:-1], 1) if not frame.key]
        out = {*(plain[1::2] if len(plain) > 1 else range(1, last, 2))}
        frames = [frame for place, frame in enumerate(self.frames) if place not in out]
        return replace(self, frames=frames, small=self.small and self.small.thinned()).packed()

    def packed(self) -> Film:
        """Return the film without unused rows."""
        places: dict[int, int] = {}

        def moved(lines: Lines) -> Lines:
            return tuple(places.setdefault(line, len(places)) for line in lines)

        frames = [frame._replace(lines=moved(frame.lines)) for frame in self.frames]
        stops = [stop._replace(lines=moved(stop.lines), answered=moved(stop.answered)) for stop in self.stops]
        return replace(self, rows=[self.rows[old] for old in places], frames=frames, stops=stops)


def row_text(row: Row) -> str:
    return "".join(span.text for span in row).rstrip()


@dataclass
class Pool:
    """A collection of distinct rows and inks."""

    inks: dict[Ink, int] = field(default_factory=dict)
    rows: dict[Row, int] = field(default_factory=dict)

    def ink(self, ink: Ink) -> int:
        return self.inks.setdefault(ink, len(self.inks))

    def row(self, row: Row) -> int:
        return self.rows.setdefault(row, len(self.rows))
