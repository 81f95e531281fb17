"""Making a film: one replay without a terminal is driven from moment to moment, and its screens are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from math import inf
from operator import itemgetter
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.pilot import Pilot

from fwtui.analysis.columns import PRINTED, columns_of, head, outcome, printed
from fwtui.analysis.warps import at_line, main_samples, warp_reason
from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.learn.cue import cue_of
from fwtui.sessions.library import model_of
from fwtui.sessions.player import Player
from fwtui.sessions.reader import Loaded
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import settle
from fwtui.tui.export.film import (
    Film,
    FilmCut,
    FilmFrame,
    FilmHotLine,
    FilmStop,
    FilmStretch,
    FilmWarps,
    Ink,
    Lines,
    Pool,
    Row,
    Span,
)
from fwtui.tui.frame.cue_card import card
from fwtui.tui.frame.frame import Frame as Screen
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.recording import Recording, first_seconds
from fwtui.tui.textual_internals import leave_undrawn, strips

MOST_FRAMES = 2000
MOST_RUNS, MOST_STOPS = 1000, 300  # in the table and on the timeline
MOST_SAMPLED, MOST_LINES, WIDEST = 100, 3, 200  # runs whose samples are shown; of each phase, lines; their characters
DIGITS = 3  # of seconds, everywhere: a run begins with the frame in which it does
STILL = 1.0  # seconds of a film without a new frame, where nothing happens
HANDLED = 2  # times that all messages are handled before a look at the screen
DIM = 0.5
KEYS = events.RunStarted | events.RunDone | events.Marker | events.Fault  # each has a frame of its own
BAD = ("failed", "refused", "cancelled")


class CaptureMoment(NamedTuple):
    """A frame to be taken: at the marker of that number, or where the recording is then."""

    recorded: float
    played: float
    key: bool = False
    marker: int = 0
    event: events.Marker | None = None  # of that number


class FilmClock:
    """The film's time and the session's: idle gaps are shortened, and it begins where the cut does."""

    def __init__(self, loaded: Loaded, cut: FilmCut):
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


async def capture(
    name: str, loaded: Loaded, size: tuple[int, int], place: str, look: Appearance, cut: FilmCut, tell: Callable[[float], None]
) -> Film:
    """The film of that session; `tell` is given the share (0..1) of its frames that is there."""
    ends = cut.end >= loaded.duration
    # the end comes first, and is as render() shows it: nothing that came before has scrolled a panel
    recording = Recording(name, loaded, start=loaded.duration if ends else cut.begin)
    app = FwtuiApp(replay=recording, still=True, place=place, look=look)
    clock = FilmClock(loaded, cut)
    plan = moments(loaded, clock, cut.rate)
    pool = Pool()
    frames: list[FilmFrame] = []
    stops: list[FilmStop] = []
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        leave_undrawn(app.screen)
        last = await _screen(app, pilot, pool) if ends else ()
        view, player = app.view, recording.player
        assert view is not None and view.playback is not None
        for number, moment in enumerate(plan):
            if moment.marker:
                player.seek_marker(str(moment.marker))
            else:
                player.seek_time(moment.recorded)
            # what plays says so, up to its end and, in a lecture, up to a marker
            player.playing = not (player.at_end or (moment.marker and player.stops))
            app.tick(0.0)
            if moment.key:  # what people go to is right on the busiest machine
                await settle(app, pilot)
            lines = await _screen(app, pilot, pool)
            frames.append(FilmFrame(round(moment.recorded, DIGITS), moment.played, lines, moment.key))
            if moment.event is not None:
                stops.append(await _stop(app, pilot, pool, frames[-1], moment.marker, moment.event))
            tell((number + 1) / len(plan))
        dark = app.current_theme.dark
    if ends:
        frames[-1] = frames[-1]._replace(lines=last)
    model = model_of(loaded)
    runs, inks, rows = [*model.runs.values()], [*pool.inks], [*pool.rows]
    grounds = Counter[str]()
    for span in chain.from_iterable(rows[line] for line in frames[-1].lines):
        grounds[inks[span.ink].ground] += cell_len(span.text)
    return Film(
        width=size[0],
        height=size[1],
        ground=grounds.most_common(1)[0][0],
        dark=dark,
        title=loaded.header.title or name,
        origin=recording.origin.removeprefix(f"{loaded.header.title} · "),
        problems=recording.problems,
        inks=inks,
        rows=rows,
        frames=frames,
        duration=clock.duration,
        runs=[_stretch(model, run, clock) for run in runs[:MOST_RUNS] if _seen(run, clock)],
        stops=stops,
        directed=recording.marks.directed,
        head=head(PRINTED, "±"),
        numbers=frozenset(place for place, column in enumerate(columns_of(PRINTED)) if column.right),
        table=[printed(model, run) for run in runs[:MOST_RUNS]],
        warps=[*islice(_warps(runs), MOST_SAMPLED)],
        left_out=tuple(_left_out(loaded, runs)),
    )


def moments(loaded: Loaded, clock: FilmClock, rate: float) -> list[CaptureMoment]:
    """When frames are taken: at the film's rate while something happens, at both ends of a run, and at markers.

    More than MOST_FRAMES are thinned evenly.
    """
    player = Player(loaded.lines)
    step = max(1 / rate, clock.duration / MOST_FRAMES)
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
            if markers <= MOST_STOPS:
                keys.append(key._replace(marker=markers, event=event))
        elif not keys or keys[-1] != key:  # what happens at once is seen at once
            keys.append(key)
    taken = [*sorted({key.played for key in keys} | {clock.duration}), inf]
    found = [moment for moment in found if taken[bisect_left(taken, moment.played - step / 4)] > moment.played + step / 4]
    found = sorted([*found, *keys], key=lambda moment: moment.played)  # of one time: as they are in the file
    found = found[:: -(-len(found) // MOST_FRAMES) or 1]
    return [*found, CaptureMoment(clock.end, clock.duration, key=True)]


async def _screen(app: FwtuiApp, pilot: Pilot[None], pool: Pool) -> Lines:
    """What is on the screen, once its widgets have taken what they were sent, and what they sent one another because of that."""
    for _ in range(HANDLED):
        await pilot.pause(0)  # without a delay it would wait until the processor is idle, 20 ms at least
    return tuple(pool.row(_row(strip, pool)) for strip in strips(app.screen))


async def _stop(app: FwtuiApp, pilot: Pilot[None], pool: Pool, frame: FilmFrame, number: int, marker: events.Marker) -> FilmStop:
    """The marker at the recording's position, and what its run answers."""
    view, screen = app.view, app.screen
    assert view is not None and isinstance(screen, Screen)
    view.answered = number
    told = card(view, str, roomy=False)
    answer, lines = (told.answer if told is not None else None), ()
    if answer is not None:
        screen.update(True)
        await settle(app, pilot)  # the panel that it points at is scrolled to
        lines = await _screen(app, pilot, pool)
    view.answered = None
    screen.update(True)
    return FilmStop(frame.recorded, frame.played, cue_of(marker), answer, frame.lines, lines, marker.notes)


def _row(strip: Iterable[Segment], pool: Pool) -> Row:
    inked = ((pool.ink(_ink(style or Style.null())), text) for text, style, control in strip if text and not control)
    return tuple(Span("".join(text for _, text in same), ink) for ink, same in groupby(inked, key=itemgetter(0)))


@lru_cache(maxsize=4096)
def _ink(style: Style) -> Ink:
    """As in Textual's own pictures."""
    theme = SVG_EXPORT_THEME
    colour = theme.foreground_color if style.color is None else style.color.get_truecolor(theme)
    ground = theme.background_color if style.bgcolor is None else style.bgcolor.get_truecolor(theme, foreground=False)
    if style.reverse:
        colour, ground = ground, colour
    if style.dim:
        colour = blend_rgb(colour, ground, DIM)
    lines = bool(style.underline), bool(style.strike)
    return Ink(colour.hex, ground.hex, bool(style.bold), bool(style.italic), *lines)


def _seen(run: Run, clock: FilmClock) -> bool:
    return run.started <= clock.end and (run.finished is None or run.finished >= clock.begin)


def _stretch(model: Model, run: Run, clock: FilmClock) -> FilmStretch:
    over = run.finished if run.finished is not None else clock.end
    begin, end = (min(max(t, clock.begin), clock.end) for t in (run.started, over))
    return FilmStretch(
        run=run.id,
        title=run.title or run.experiment.kernel,
        kernel=run.experiment.kernel,
        said=", ".join([f"n {run.n}", *[units.duration(run.seconds)] * (run.seconds is not None), outcome(model, run)]),
        begin=clock.played(begin),
        end=clock.played(end),
        recorded=(round(begin, DIGITS), round(end, DIGITS)),
        bad=run.wrong or run.state in BAD,
    )


def _warps(runs: Iterable[Run]) -> Iterator[FilmWarps]:
    """The lines at which most warps of each phase were, for runs that were sampled."""
    for run in runs:
        titles, lines = {phase.key: phase.title for phase in run.phase_names}, list[FilmHotLine]()
        for told in run.warps:
            listing = run.listing(told.op)
            for one in listing.sampled[:MOST_LINES] if listing is not None and told.samples else ():
                share = units.percent(one.samples / told.samples)
                place, text = f"{one.file}:{one.line}", shortened(one.text.strip(), WIDEST)
                lines.append(FilmHotLine(titles.get(told.op, told.op), place, share, at_line(one), text))
        if (main := main_samples(run)) is not None:
            reason = warp_reason(main, run.listing(main.op))
            yield FilmWarps(run.id, f"run {run.id}, {run.title or run.experiment.kernel}: {reason}", lines)


def _left_out(loaded: Loaded, runs: Sequence[Run]) -> Iterator[str]:
    markers = sum(isinstance(line.event, events.Marker) for line in loaded.lines)
    sampled = sum(bool(run.warps) for run in runs)
    for there, most, what in (
        (len(runs), MOST_RUNS, "runs"),
        (markers, MOST_STOPS, "markers"),
        (sampled, MOST_SAMPLED, "runs that were sampled"),
    ):
        if there > most:
            yield f"the first {most:,} of {there:,} {what}"
