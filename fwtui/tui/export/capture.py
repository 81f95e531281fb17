"""Make a film of a replay: the moments of its screens, its runs, markers and tables."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from math import inf
from pathlib import Path

from rich.cells import cell_len

from fwtui.analysis.bottleneck import reason_of
from fwtui.analysis.columns import PRINTED, columns_of, head, outcome, printed
from fwtui.analysis.phase_table import roofs_of
from fwtui.analysis.warps import main_samples, state_at
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.learn.questions import cue_of
from fwtui.sessions.library import model_of
from fwtui.sessions.player import Player
from fwtui.sessions.reader import LoadedSession
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.export.film import SMALL, SMALL_RATE, Film, FilmCut, FilmFrame, FilmHotspot, FilmStop, FilmStretch, FilmWarps
from fwtui.tui.export.screens import CaptureMoment, Screens, ScreensWanted, capture_screens
from fwtui.tui.frame.appearance import Appearance
from fwtui.tui.frame.loaded_recording import Recording, first_seconds, named

MAX_FRAMES = 2000
MAX_RUNS, MAX_STOPS = 1000, 300  # in the table and on the timeline
MAX_SAMPLED, MAX_LINES, WIDEST = 100, 3, 200  # runs with PC samples, hotspots of a phase, and characters of a line
DIGITS = 3  # decimals of seconds: a run must begin exactly at its frame
STILL = 1.0  # seconds between frames if nothing happens
KEYS = events.RunStarted | events.RunDone | events.Marker | events.Fault  # each has a separate frame
BAD = ("failed", "refused", "cancelled")


class FilmClock:
    """Conversion between session time and film time, which shortens idle gaps and starts at the cut."""

    def __init__(self, session: LoadedSession, cut: FilmCut):
        self._player = Player(session.lines, cut.gap)
        self._speed = cut.speed
        self.begin = min(cut.begin or first_seconds(session.lines), session.duration)
        self.end = min(max(cut.end, self.begin), session.duration)
        self._player.seek_time(self.begin)
        self._first = self._player.position
        self.duration = self.played(self.end)

    def played(self, recorded: float) -> float:
        self._player.seek_time(recorded)
        return round(max(self._player.position - self._first, 0.0) / self._speed, DIGITS)

    def recorded(self, played: float) -> float:
        self._player.seek(played * self._speed + self._first)
        return self._player.time

    def within(self, recorded: float) -> bool:
        return self.begin <= recorded <= self.end


def capture(
    path: Path,
    session: LoadedSession,
    size: tuple[int, int],
    place: str,
    look: Appearance,
    cut: FilmCut,
    report: Callable[[float], None],
    small: bool = False,
) -> Film:
    """Return the film of a session, with `small` also in few and large letters; `report` gets the completed share (0 to 1)."""
    ends = cut.end >= session.duration
    # the end is captured first, as render() shows it: no earlier moment has scrolled a panel
    start = session.duration if ends else cut.begin
    clock = FilmClock(session, cut)
    wanted_screens = [
        ScreensWanted(named(path), cells, place, look, start, tuple(moments(session, clock, rate)))
        for cells, rate in [(size, cut.rate), (SMALL, min(cut.rate, SMALL_RATE))][: 1 + small]
    ]
    screens_at = [capture_screens(session, part, report) for part in wanted_screens]
    if ends:
        for screens in screens_at:
            screens.lines[-1] = screens.first
    model, recording = model_of(session.lines), Recording(named(path), session)
    runs = [*model.runs.values()]
    visible = [r for r in runs[:MAX_RUNS] if r.started <= clock.end and (r.finished is None or r.finished >= clock.begin)]
    markers = [line.event for line in session.lines if isinstance(line.event, events.Marker)]
    films = [
        Film(
            width=part.size[0],
            height=part.size[1],
            ground=_ground(screens),
            dark=screens.dark,
            title=session.header.title or recording.name,
            origin=recording.origin.removeprefix(f"{session.header.title} · "),
            problems=session.faults,
            inks=screens.inks,
            rows=screens.rows,
            frames=[
                FilmFrame(round(moment.recorded, DIGITS), moment.played, lines, moment.key)
                for moment, lines in zip(part.moments, screens.lines, strict=True)
            ],
            duration=clock.duration,
            runs=[_stretch(model, run, clock) for run in visible],
            stops=[*_stops(part, screens, markers)],
            directed=recording.marks.directed,
            head=head(PRINTED, "±"),
            numbers=frozenset(place for place, column in enumerate(columns_of(PRINTED)) if column.right),
            table=[printed(model, run) for run in runs[:MAX_RUNS]],
            warps=[*islice(_warps(model, runs), MAX_SAMPLED)],
            left_out=tuple(_left_out(session, runs)),
        )
        for part, screens in zip(wanted_screens, screens_at, strict=True)
    ]
    return replace(films[0], small=replace(films[1], ground=films[0].ground) if small else None)


def _stops(part: ScreensWanted, screens: Screens, markers: Sequence[events.Marker]) -> Iterator[FilmStop]:
    for moment, lines in zip(part.moments, screens.lines, strict=True):
        if moment.marker:
            marker, (answer, answered) = markers[moment.marker - 1], screens.answers[moment.marker]
            yield FilmStop(round(moment.recorded, DIGITS), moment.played, cue_of(marker), answer, lines, answered)


def _ground(screens: Screens) -> str:
    """Return the most frequent background colour of the last screen."""
    grounds = Counter[str]()
    for text, ink in chain.from_iterable(screens.rows[line] for line in screens.lines[-1]):
        grounds[screens.inks[ink].ground] += cell_len(text)
    return grounds.most_common(1)[0][0]


def moments(session: LoadedSession, clock: FilmClock, rate: float) -> list[CaptureMoment]:
    """Return the times of the frames: at the film's rate while something happens, at both ends of each run, and at markers.

    More than MAX_FRAMES are thinned evenly.
    """
    player = Player(session.lines)
    step = max(1 / rate, clock.duration / MAX_FRAMES)
    found = [CaptureMoment(clock.begin, 0.0, key=True)]
    index = player.index_at(clock.begin)
    for tick in range(1, int(clock.duration / step) + 1):
        played = round(tick * step, DIGITS)
        recorded = clock.recorded(played)
        if (now := player.index_at(recorded)) != index or played - found[-1].played >= STILL:
            index = now
            found.append(CaptureMoment(recorded, played))
    keys: list[CaptureMoment] = []
    markers = 0
    for place, line in enumerate(session.lines):
        event, recorded = line.event, player.due(place)
        markers += isinstance(event, events.Marker)
        if not isinstance(event, KEYS) or not clock.within(recorded):
            continue
        key = CaptureMoment(recorded, clock.played(recorded), True)
        if isinstance(event, events.Marker):
            if markers <= MAX_STOPS:
                keys.append(key._replace(marker=markers))
        elif not keys or keys[-1] != key:  # simultaneous events share a frame
            keys.append(key)
    key_times = [*sorted({key.played for key in keys} | {clock.duration}), inf]
    found = [moment for moment in found if key_times[bisect_left(key_times, moment.played - step / 4)] > moment.played + step / 4]
    found = sorted([*found, *keys], key=lambda moment: moment.played)  # stable: equal times keep the order of the file
    found = found[:: -(-len(found) // MAX_FRAMES) or 1]
    return [*found, CaptureMoment(clock.end, clock.duration, key=True)]


def _stretch(model: Model, run: Run, clock: FilmClock) -> FilmStretch:
    over = run.finished if run.finished is not None else clock.end
    begin, end = (min(max(t, clock.begin), clock.end) for t in (run.started, over))
    return FilmStretch(
        run=run.id,
        title=run.title or run.experiment.kernel,
        kernel=run.experiment.kernel,
        outcome=", ".join([f"n {run.n}", *[units.duration(run.seconds)] * (run.seconds is not None), outcome(model, run)]),
        begin=clock.played(begin),
        end=clock.played(end),
        recorded=(round(begin, DIGITS), round(end, DIGITS)),
        bad=run.wrong or run.state in BAD,
    )


def _warps(model: Model, runs: Iterable[Run]) -> Iterator[FilmWarps]:
    """Yield the hotspots of each phase for runs with PC samples."""
    for run in runs:
        lines: list[FilmHotspot] = []
        for samples in run.warps:
            listing = run.listing(samples.op)
            for one in listing.sampled[:MAX_LINES] if listing is not None and samples.samples else ():
                share = units.percent(one.samples / samples.samples)
                place, text = f"{one.file}:{one.line}", truncate(one.text.strip(), WIDEST)
                lines.append(FilmHotspot(run.phase_title(samples.op), place, share, state_at(one), text))
        if (main := main_samples(run)) is not None:
            reason = reason_of(run, roofs_of(model, run).issue_slots, main)
            yield FilmWarps(run.id, f"run {run.id}, {run.title or run.experiment.kernel}: {reason}", lines)


def _left_out(session: LoadedSession, runs: Sequence[Run]) -> Iterator[str]:
    markers = sum(isinstance(line.event, events.Marker) for line in session.lines)
    sampled = sum(bool(run.warps) for run in runs)
    limits = ((len(runs), MAX_RUNS, "runs"), (markers, MAX_STOPS, "markers"), (sampled, MAX_SAMPLED, "runs with PC samples"))
    for there, most, what in limits:
        if there > most:
            yield f"the first {most:,} of {there:,} {what}"
