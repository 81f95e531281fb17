"""Making a film: which screens of a replay it has, and what is said beside them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from math import inf
from pathlib import Path

from rich.cells import cell_len

from fwtui.analysis.columns import PRINTED, columns_of, head, outcome, printed
from fwtui.analysis.warps import main_samples, state_at, warp_reason
from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.learn.questions import cue_of
from fwtui.sessions.library import model_of
from fwtui.sessions.player import Player
from fwtui.sessions.reader import LoadedSession
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.export.film import (
    SMALL,
    SMALL_RATE,
    Film,
    FilmCut,
    FilmFrame,
    FilmHotspot,
    FilmStop,
    FilmStretch,
    FilmWarps,
)
from fwtui.tui.export.screens import CaptureMoment, Screens, ScreensWanted, drawn_screens
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.recording import Recording, first_seconds, named

MAX_FRAMES = 2000
MAX_RUNS, MAX_STOPS = 1000, 300  # in the table and on the timeline
MAX_SAMPLED, MAX_LINES, WIDEST = 100, 3, 200  # runs whose samples are shown; of each phase, lines; their characters
DIGITS = 3  # of seconds, everywhere: a run begins with the frame in which it does
STILL = 1.0  # seconds of a film without a new frame, where nothing happens
KEYS = events.RunStarted | events.RunDone | events.Marker | events.Fault  # each has a frame of its own
BAD = ("failed", "refused", "cancelled")


class FilmClock:
    """The film's time and the session's: idle gaps are shortened, and it begins where the cut does."""

    def __init__(self, loaded: LoadedSession, cut: FilmCut):
        self._player = Player(loaded.lines, cut.gap)
        self._speed = cut.speed
        self.begin = min(cut.begin or first_seconds(loaded.lines), loaded.duration)
        self.end = min(max(cut.end, self.begin), loaded.duration)
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
    loaded: LoadedSession,
    size: tuple[int, int],
    place: str,
    look: Appearance,
    cut: FilmCut,
    tell: Callable[[float], None],
    small: bool = False,
) -> Film:
    """The film of that session, also in few and large letters if `small`; `tell` is given the share (0..1) that is there."""
    ends = cut.end >= loaded.duration
    # the end comes first, and is as render() shows it: nothing that came before has scrolled a panel
    start = loaded.duration if ends else cut.begin
    clock = FilmClock(loaded, cut)
    wanted_screens = [
        ScreensWanted(str(path), cells, place, look, start, tuple(moments(loaded, clock, rate)))
        for cells, rate in [(size, cut.rate), (SMALL, min(cut.rate, SMALL_RATE))][: 1 + small]
    ]
    screens_at = drawn_screens(loaded, wanted_screens, tell)
    if ends:
        for screens in screens_at:
            screens.lines[-1] = screens.first
    model, recording = model_of(loaded), Recording(named(path), loaded)
    runs = [*model.runs.values()]
    visible = [r for r in runs[:MAX_RUNS] if r.started <= clock.end and (r.finished is None or r.finished >= clock.begin)]
    markers = [line.event for line in loaded.lines if isinstance(line.event, events.Marker)]
    films = [
        Film(
            width=part.size[0],
            height=part.size[1],
            ground=_ground(screens),
            dark=screens.dark,
            title=loaded.header.title or recording.name,
            origin=recording.origin.removeprefix(f"{loaded.header.title} · "),
            problems=recording.problems,
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
            warps=[*islice(_warps(runs), MAX_SAMPLED)],
            left_out=tuple(_left_out(loaded, runs)),
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
    """The commonest colour behind the last screen."""
    grounds = Counter[str]()
    for text, ink in chain.from_iterable(screens.rows[line] for line in screens.lines[-1]):
        grounds[screens.inks[ink].ground] += cell_len(text)
    return grounds.most_common(1)[0][0]


def moments(loaded: LoadedSession, clock: FilmClock, rate: float) -> list[CaptureMoment]:
    """When frames are taken: at the film's rate while something happens, at both ends of a run, and at markers.

    More than MAX_FRAMES are thinned evenly.
    """
    player = Player(loaded.lines)
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
    for place, line in enumerate(loaded.lines):
        event, recorded = line.event, player.due(place)
        markers += isinstance(event, events.Marker)
        if not isinstance(event, KEYS) or not clock.within(recorded):
            continue
        key = CaptureMoment(recorded, clock.played(recorded), True)
        if isinstance(event, events.Marker):
            if markers <= MAX_STOPS:
                keys.append(key._replace(marker=markers))
        elif not keys or keys[-1] != key:  # what happens at once is seen at once
            keys.append(key)
    key_times = [*sorted({key.played for key in keys} | {clock.duration}), inf]
    found = [moment for moment in found if key_times[bisect_left(key_times, moment.played - step / 4)] > moment.played + step / 4]
    found = sorted([*found, *keys], key=lambda moment: moment.played)  # of one time: as they are in the file
    found = found[:: -(-len(found) // MAX_FRAMES) or 1]
    return [*found, CaptureMoment(clock.end, clock.duration, key=True)]


def _stretch(model: Model, run: Run, clock: FilmClock) -> FilmStretch:
    over = run.finished if run.finished is not None else clock.end
    begin, end = (min(max(t, clock.begin), clock.end) for t in (run.started, over))
    return FilmStretch(
        run=run.id,
        title=run.title or run.experiment.kernel,
        kernel=run.experiment.kernel,
        words=", ".join([f"n {run.n}", *[units.duration(run.seconds)] * (run.seconds is not None), outcome(model, run)]),
        begin=clock.played(begin),
        end=clock.played(end),
        recorded=(round(begin, DIGITS), round(end, DIGITS)),
        bad=run.wrong or run.state in BAD,
    )


def _warps(runs: Iterable[Run]) -> Iterator[FilmWarps]:
    """Yield the hotspots of each phase for runs with PC samples."""
    for run in runs:
        titles, lines = {phase.key: phase.title for phase in run.phase_names}, list[FilmHotspot]()
        for samples in run.warps:
            listing = run.listing(samples.op)
            for one in listing.sampled[:MAX_LINES] if listing is not None and samples.samples else ():
                share = units.percent(one.samples / samples.samples)
                place, text = f"{one.file}:{one.line}", shortened(one.text.strip(), WIDEST)
                lines.append(FilmHotspot(titles.get(samples.op, samples.op), place, share, state_at(one), text))
        if (main := main_samples(run)) is not None:
            reason = warp_reason(main, run.listing(main.op))
            yield FilmWarps(run.id, f"run {run.id}, {run.title or run.experiment.kernel}: {reason}", lines)


def _left_out(loaded: LoadedSession, runs: Sequence[Run]) -> Iterator[str]:
    markers = sum(isinstance(line.event, events.Marker) for line in loaded.lines)
    sampled = sum(bool(run.warps) for run in runs)
    for there, most, what in (
        (len(runs), MAX_RUNS, "runs"),
        (markers, MAX_STOPS, "markers"),
        (sampled, MAX_SAMPLED, "runs with PC samples"),
    ):
        if there > most:
            yield f"the first {most:,} of {there:,} {what}"
