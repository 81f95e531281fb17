"""What a film is: the rows of its screens, each kept once, and which of them are seen when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from fwtui.learn.questions import Cue, QuestionAnswer

SMALL = (60, 24)  # columns and rows that telephones show in letters that can be read
SMALL_RATE = 0.2  # frames a second of these, besides those of runs and markers


class FilmCut(NamedTuple):
    """Which part of the session a film shows, how fast, and in how many frames."""

    begin: float = 0.0  # recorded seconds
    end: float = inf
    rate: float = 5.0  # frames a second of the film
    gap: float | None = 1.0  # the longest time in which nothing happens
    speed: float = 1.0  # seconds of the session in one of the film, where nothing is shortened


class Ink(NamedTuple):
    """How characters look; colours are #rrggbb, with dim and reverse already in them."""

    colour: str
    ground: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False


class Span(NamedTuple):
    text: str
    ink: int  # its place in Film.inks


Row = tuple[Span, ...]
Lines = tuple[int, ...]  # of a screen, from the top: places in Film.rows


class FilmFrame(NamedTuple):
    """One screen: `recorded` is its time in the session, `played` its time in the film."""

    recorded: float
    played: float
    lines: Lines
    key: bool = False  # a run begins or ends here, or a marker is here: it is never left out


class FilmStretch(NamedTuple):
    """A run on the timeline, in seconds of the film."""

    run: int
    title: str
    kernel: str
    words: str  # how it ended, in words
    begin: float
    end: float
    recorded: tuple[float, float]  # the same in seconds of the session
    bad: bool


class FilmStop(NamedTuple):
    """A marker: what it says or asks, its screen, and that with the answer."""

    recorded: float
    played: float
    cue: Cue
    answer: QuestionAnswer | str | None
    lines: Lines
    answered: Lines  # nothing where it has no answer


class FilmHotspot(NamedTuple):
    """A line of source with its share of the samples of a phase, and what warps do there."""

    phase: str
    place: str
    share: str
    reason: str
    text: str


class FilmWarps(NamedTuple):
    """Where the warps of a run wait."""

    run: int
    words: str  # what most of them do
    lines: Sequence[FilmHotspot]


@dataclass(frozen=True, kw_only=True)
class Film:
    """Screens of `width` x `height` cells."""

    width: int
    height: int
    ground: str  # the colour behind everything
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
    directed: bool = False  # a lecture: it stops at its markers
    head: Sequence[str] = ()  # of the table of runs
    numbers: frozenset[int] = frozenset()  # its columns of numbers
    table: Sequence[Sequence[str]] = ()
    warps: Sequence[FilmWarps] = ()
    left_out: tuple[str, ...] = ()  # what there was too much of, in words
    small: Film | None = None  # the same in fewer and larger letters, for telephones

    @property
    def sizes(self) -> Sequence[Film]:
        return [self] if self.small is None else [self, self.small]

    def text(self, lines: Lines) -> str:
        """A screen as plain text, as `fwtui render` writes it."""
        return "\n".join(row_text(self.rows[line]) for line in lines).rstrip("\n") + "\n"

    def thinned(self) -> Film:
        """Without every other frame at which nothing begins or ends; the last one is kept."""
        last = len(self.frames) - 1
        plain = [place for place, frame in enumerate(self.frames[1:-1], 1) if not frame.key]
        out = {*(plain[1::2] if len(plain) > 1 else range(1, last, 2))}
        frames = [frame for place, frame in enumerate(self.frames) if place not in out]
        return replace(self, frames=frames, small=self.small and self.small.thinned()).packed()

    def packed(self) -> Film:
        """Without the rows that no screen has."""
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
    """Rows and inks while they are gathered, each kept once."""

    inks: dict[Ink, int] = field(default_factory=dict)
    rows: dict[Row, int] = field(default_factory=dict)

    def ink(self, ink: Ink) -> int:
        return self.inks.setdefault(ink, len(self.inks))

    def row(self, row: Row) -> int:
        return self.rows.setdefault(row, len(self.rows))
