"""A small picture of the matrix that highlights the cells which the present step of a run's plan reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from fwtui.analysis.plan_frames import Deal, PlanFrames, Scene, frames_of, raced_scene, scene, slow_scene
from fwtui.analysis.race_timeline import SECONDS
from fwtui.stream.run import Run
from fwtui.tui.widgets.run_labels import is_beginning
from fwtui_kernels.plan import Rect

REST, FILLED, WRITTEN, READ, SENT = range(5)  # states of a pixel; a greater one takes precedence
PARTS = ("rest", "filled", "written", "read", "sent")
GLYPHS = "·░▒█="  # the states without colours
# colours of ranks; if several ranks share a matrix, a pixel is its state + len(PARTS) * rank
HUES = ("#4c8ed9", "#d7873b", "#4fa65f", "#c05fa8", "#8f7fdf", "#a8a23f", "#3fabab", "#d75f5f")
SIGNS = "0123456789abcdefghijklmnopqrstuvwxyz"
RANKS = 10  # cells of the list of ranks, right of the picture
Pixels = list[bytearray]


def pixels(scene: Scene, width: int, height: int) -> Pixels:
    """Draw the scene on a grid. A pixel shows everything that touches it, so that the smallest rectangle is visible."""
    shades = [owner % len(HUES) * len(PARTS) for owner in owners(scene, height)] or [0] * height
    grid = [bytearray([shade]) * width for shade in shades]
    for y in range(round(scene.filled * height)):
        grid[y][:] = bytes([FILLED + shades[y]]) * width
    broadcast = (scene.sent,) if scene.sent is not None else ()
    for rects, part in ((scene.targets, WRITTEN), (scene.sources, READ), (broadcast, SENT)):
        for rect in rects:
            left, right = rect.left * width // scene.side, -(-rect.right * width // scene.side)
            for y in _lines(scene, rect, height):
                grid[y][left:right] = bytes([part + shades[y]]) * (right - left)
    return grid


def owners(scene: Scene, height: int) -> list[int]:
    """Return the rank that owns each row of pixels; empty for a matrix on one device.

    If there are more rows of tiles than rows of pixels, the ranks alternate over the pixels as they do over the tiles; only a
    single row of tiles in the scene is then drawn with its owner.
    """
    deal = scene.deal
    if deal is None:
        return []
    if scene.side <= height * deal.tile:
        return [deal.owner(y * scene.side // height) for y in range(height)]
    ranks = [y % deal.ranks for y in range(height)]
    for rects in (scene.targets, [scene.sent] if scene.sent is not None else []):
        if rects and max(rect.bottom for rect in rects) - min(rect.top for rect in rects) <= deal.tile:
            for y in _lines(scene, rects[0], height):
                ranks[y] = deal.owner(rects[0].top)
    return ranks


def _lines(scene: Scene, rect: Rect, height: int) -> range:
    """Return the rows of pixels that a rectangle touches."""
    return range(rect.top * height // scene.side, min(-(-rect.bottom * height // scene.side), height))


class MatrixPicture(Widget):
    """A caption, the picture in square pixels of half a cell, and a legend.

    Without colours a pixel is one cell, and its character shows its state. Rows of several ranks have the colours of the
    ranks, or without colours their numbers.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    MatrixPicture { width: 28; height: 10; padding-left: 2; }
    MatrixPicture .matrix--rest { color: $foreground 10%; }
    MatrixPicture .matrix--filled { color: $primary 40%; }
    MatrixPicture .matrix--written { color: $primary; }
    MatrixPicture .matrix--read { color: $foreground; }
    MatrixPicture .matrix--sent { color: $foreground; }
    MatrixPicture .matrix--caption { color: $text-muted; }
    """ + "".join(
        f"MatrixPicture .matrix--rest{rank} {{ color: {hue} 25%; }} MatrixPicture .matrix--filled{rank} {{ color: {hue} 60%; }} "
        f"MatrixPicture .matrix--written{rank} {{ color: {hue}; }}\n"
        for rank, hue in enumerate(HUES)
    )
    COMPONENT_CLASSES: ClassVar = {
        *(f"matrix--{part}" for part in (*PARTS, "caption")),
        *(f"matrix--{part}{rank}" for part in PARTS[:READ] for rank in range(len(HUES))),
    }

    steps_at_once = 4096  # steps of a plan that are processed before keys are handled again
    pause_seconds = 0.02
    slow_steps_per_second = 3

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None
        self._now = 0.0
        self._frames: PlanFrames | None = None
        self._of: tuple[object, ...] = ()  # the data from which the frames were computed
        self.scene: Scene | None = None  # the displayed scene
        self._strips: list[Strip] = []
        self._made_for: tuple[object, ...] = ()
        self._at_work = False
        self._motion: Timer | None = None
        self._place = 0  # frame of the slow motion
        self._raced: float | None = None  # share of the repetition completed in a race
        self.tooltip = "which cells of the matrix the kernel's plan reads and writes at this step"

    def show(self, run: Run | None, now: float, motion: bool = False) -> None:
        """Show the run at session time `now` if its plan exists; with `motion`, its plan in slow motion unless it progresses."""
        self._run, self._now = run, now
        if motion != self.moves:
            if self._motion is not None:
                self._motion.stop()
            self._place = 0
            still = getattr(self.app, "still", False)
            self._motion = self.set_interval(1 / self.slow_steps_per_second, self._step, pause=still) if motion else None
        of = (run.id, run.experiment, run.n, len(run.plan)) if run is not None and run.padded else ()
        if of != self._of:
            self._of = of
            self._frames = frames_of(run) if run is not None and of else None
        self._process_steps()

    @property
    def moves(self) -> bool:
        """True in slow motion."""
        return self._motion is not None

    def race(self, run: Run, share: float) -> None:
        """Show that share of one repetition of the run."""
        self._raced = share
        self.show(run, 0.0)

    def _step(self) -> None:
        self._place += 1
        self._see()

    def _process_steps(self) -> None:
        """Process a long plan in slices; for a picture, process all of it at once."""
        frames = self._frames
        self._at_work = False
        if frames is not None and not frames.complete:
            still = getattr(self.app, "still", False)
            self._at_work = not (frames.process() if still else frames.process(self.steps_at_once)) and not frames.hopeless
            if self._at_work:
                self.set_timer(self.pause_seconds, lambda: self._process_steps() if self._at_work else None)
        self._see()

    def _see(self) -> None:
        frames, run, scene_now = self._frames, self._run, None
        if frames is not None and frames.complete and len(frames) and run is not None:
            if self._raced is not None:
                scene_now = raced_scene(frames, run, self._raced, SECONDS)
            elif self._motion is not None and (run.state != "running" or is_beginning(run)):
                scene_now = slow_scene(frames, run, self._place)
            else:
                scene_now = scene(frames, run, self._now)
        if self.display != (scene_now is not None):
            self.display = scene_now is not None
        if scene_now != self.scene:
            self.scene = scene_now
            self.refresh()

    def render_line(self, y: int) -> Strip:
        deal = self.scene.deal if self.scene is not None else None
        ranks = [""] if deal is None else range(min(deal.ranks, len(HUES)))
        names = [f"{part}{rank if part in PARTS[:READ] else ''}" for rank in ranks for part in PARTS]
        colours = tuple(self.get_component_rich_style(f"matrix--{name}") for name in (*names, "caption"))
        plain = self.app.no_color
        made_for = (self.scene, self.size, colours, plain)
        if made_for != self._made_for:
            self._made_for = made_for
            self._strips = self._drawn(colours, plain)
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _drawn(self, colours: Sequence[Style], plain: bool) -> list[Strip]:
        width, height = self.content_size
        scene = self.scene
        if scene is None or width < 1 or height < 1:
            return []
        rows = min(max(1, height - 2), max(1, (width - RANKS * (scene.deal is not None)) // 2))
        caption = next((one for one in scene.captions if len(one) <= width), scene.captions[-1][:width])
        if plain:
            grid = pixels(scene, 2 * rows, rows)
            rows_of_segments = [[Segment(GLYPHS[code % len(PARTS)], colours[code]) for code in row] for row in grid]
            for line, owner in zip(rows_of_segments, owners(scene, rows), strict=False):
                line.insert(0, Segment(SIGNS[owner % len(SIGNS)], colours[-1]))
        else:
            rows_of_segments = halves(pixels(scene, 2 * rows, 2 * rows), colours)
        if scene.deal is not None:
            for line, rank in zip(rows_of_segments, _ranks(scene.deal, scene, rows, colours, plain), strict=False):
                line += rank
        lines = [[Segment(caption, colours[-1])], *rows_of_segments, _legend(scene, colours, plain)]
        return [Strip(line).simplify().adjust_cell_length(width, self.rich_style) for line in lines[:height]]


def halves(grid: Pixels, colours: Sequence[Style]) -> list[list[Segment]]:
    """Draw two rows of pixels per line: the upper one as foreground, the lower one as background."""
    pairs = {pair for above, below in zip(grid[0::2], grid[1::2], strict=True) for pair in zip(above, below, strict=True)}
    styles = {(upper, lower): colours[upper] + Style(bgcolor=colours[lower].color) for upper, lower in pairs}
    return [
        [Segment("▀", styles[pair]) for pair in zip(above, below, strict=True)]
        for above, below in zip(grid[0::2], grid[1::2], strict=True)
    ]


def _legend(scene: Scene, colours: Sequence[Style], plain: bool) -> list[Segment]:
    line: list[Segment] = []
    for part, there in ((WRITTEN, scene.targets), (READ, scene.sources), (SENT, scene.sent)):
        if there:
            line += [Segment(GLYPHS[part] if plain else "■", colours[part]), Segment(f" {PARTS[part]}  ", colours[-1])]
    return line


def _ranks(deal: Deal, scene: Scene, most: int, colours: Sequence[Style], plain: bool) -> list[list[Segment]]:
    """Return a line for each rank, at most `most` lines; during a broadcast each shows whether the rank sends or receives."""
    lines: list[list[Segment]] = []
    sender = deal.owner(scene.sent.top) if scene.sent is not None else None
    for rank in range(min(deal.ranks, most)):
        named = f" rank {rank}" if sender is None else f" {rank}"
        does = "" if sender is None else " sends" if rank == sender else " gets"
        colour = colours[rank % len(HUES) * len(PARTS) + WRITTEN]
        lit = colours[SENT] if sender is not None else colours[-1]
        lines.append([Segment(" ", colours[-1]), *([] if plain else [Segment("■", colour)]), Segment(f"{named}{does}", lit)])
    if deal.ranks > most and lines:
        lines[-1] = [Segment(f"  ... {deal.ranks - 1}", colours[-1])]
    return lines
