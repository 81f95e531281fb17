"""A kernel's plan as frames: the rectangles of the matrix that each step reads and writes, in order of the work.

The plan is data, so the frames of a recorded run are rebuilt from its experiment, without a GPU.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import islice
from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named, settle
from fwtui.stream import events
from fwtui.stream.run import Run
from fwtui.stream.stages import STAGES, doing
from fwtui_kernels.plan import EVERY, Cost, EliminationOrder, Kernel, Rect, Shape, Step, Supernode

MAX_FRAMES = 2048
MAX_RECORDED = 512  # frames of a user kernel in a session
SLOW_ROUNDS, SLOW_STEPS = 64, 8  # rounds in slow motion, and steps of each
MAX_STEPS = 250_000  # steps of a plan; a longer plan has no frames


class PlanFrame(NamedTuple):
    """A step of the plan (in a long plan, the heaviest of several). Rectangles are in vertices, in any of the matrices."""

    first: int  # relaxations before the step
    weight: int  # relaxations of the step
    round: int  # counts from 1
    phase: str
    sources: tuple[Rect, ...]  # read but not written
    targets: tuple[Rect, ...]  # written
    sent: Rect | None = None  # panel that is being broadcast


class Deal(NamedTuple):
    """The block-cyclic distribution of rows of tiles to ranks."""

    ranks: int
    tile: int

    def owner(self, row: int) -> int:
        """Return the rank that holds a row of the matrix."""
        return row // self.tile % self.ranks


class PlanFrames:
    """The frames of a plan, made a few steps at a time by `process()` until it is `complete`; without copies of tiles.

    A plan with more than MAX_FRAMES steps shares its frames among steps. One with more than MAX_STEPS steps has no frames.
    """

    def __init__(
        self,
        side: int,
        rounds: Iterator[tuple[int, Step]],
        places: Callable[[Iterable[Rect]], tuple[Rect, ...]],
        deal: Deal | None = None,
    ):
        """`rounds` yields steps with their rounds; `places` selects the rectangles of the matrix; `deal` assigns rows."""
        self.side = side
        self.deal = deal
        self.rounds = 0
        self.relaxations = 0
        self.complete = False
        self._frames: list[PlanFrame] = []
        self._every = 1  # steps that share a frame
        self._processed = 0  # steps of the plan processed so far
        self._places = places
        self._steps = rounds
        self._sent: Rect | None = None

    @classmethod
    def of(cls, kernel: Kernel, shape: Shape) -> PlanFrames:
        """Return the frames of the kernel's plan."""
        deal = Deal(shape.ranks, shape.tile) if shape.ranks > 1 else None
        steps = kernel.together(shape) if deal and kernel.together else kernel.plan(shape, True)
        return cls(shape.padded, kernel.rounds(steps), kernel.places, deal)

    def plan_steps(self) -> tuple[events.PlanStep, ...]:
        """Return the complete frames for a session; empty if one has too many rectangles."""
        frames = self._frames
        while len(frames) > MAX_RECORDED:
            frames = _halved(frames)
        ends = [*(frame.first for frame in frames[1:]), self.relaxations]
        if any(len(cells) > events.PLAN_RECTS for frame in frames for cells in (frame.sources, frame.targets)):
            return ()
        return tuple(
            events.PlanStep(f.round, f.phase, end - f.first, tuple(r[:4] for r in f.sources), tuple(r[:4] for r in f.targets))
            for f, end in zip(frames, ends, strict=True)
        )

    def process(self, steps: int = MAX_STEPS) -> bool:
        """Process that many more steps of the plan. Return True if it is complete."""
        if not self.complete:
            count = self._processed
            for number, step in islice(self._steps, max(0, min(steps, MAX_STEPS - count))):
                self._take(number, step)
            self.complete = self._processed < min(count + steps, MAX_STEPS)
        return self.complete

    @property
    def hopeless(self) -> bool:
        """True if the plan is too long for frames."""
        return not self.complete and self._processed >= MAX_STEPS

    def at(self, done: int) -> PlanFrame:
        """Return the frame after `done` relaxations; the frames must be complete."""
        return self._frames[max(0, bisect_right(self._frames, done, key=lambda frame: frame.first) - 1)]

    def heaviest(self, done: int) -> PlanFrame:
        """Return the frame with the most relaxations of the round after `done` relaxations."""
        here = self.at(done).round
        return max((frame for frame in self._frames if frame.round == here), key=lambda frame: frame.weight)

    def slowly(self, most_rounds: int = SLOW_ROUNDS, most_steps: int = SLOW_STEPS) -> list[PlanFrame]:
        """Return the frames of some evenly chosen rounds, in order, for slow motion."""
        every = -(-self.rounds // most_rounds)
        by_round: dict[int, list[int]] = {}
        for place, frame in enumerate(self._frames):
            if (frame.round - 1) % max(every, 1) == 0:
                by_round.setdefault(frame.round, []).append(place)
        places = sorted(place for places in by_round.values() for place in places[:: -(-len(places) // most_steps)])
        return [self._frames[place] for place in places]

    def __len__(self) -> int:
        return len(self._frames)

    def _take(self, number: int, step: Step) -> None:
        self.rounds = number
        targets = self._places(step.writes)
        sources = tuple(rect for rect in self._places(step.reads) if rect not in targets)
        deal = self.deal
        if deal is not None and step.rank == EVERY:
            self._sent = Rect((number - 1) * deal.tile, 0, number * deal.tile, self.side)
        elif deal is not None and self._sent is not None and (step.lane or self._sent.top < number * deal.tile):
            self._sent = None  # the panel has arrived, and the next one is not ready
        frame = PlanFrame(self.relaxations, step.cost.relaxations, number, step.phase, sources, targets, self._sent)
        self.relaxations += step.cost.relaxations
        if self._processed % self._every:
            self._frames[-1] = _heavier(self._frames[-1], frame)
        else:
            self._frames.append(frame)
        self._processed += 1
        if len(self._frames) > MAX_FRAMES:
            self._frames = _halved(self._frames)
            self._every *= 2


def _heavier(first: PlanFrame, second: PlanFrame) -> PlanFrame:
    """Return the heavier of two adjacent frames, from the start of the first."""
    return second._replace(first=first.first) if second.weight > first.weight else first


def _halved(frames: list[PlanFrame]) -> list[PlanFrame]:
    """Return the heavier frame of each pair."""
    return [reduce(_heavier, frames[place : place + 2]) for place in range(0, len(frames), 2)]


def frames_of(run: Run) -> PlanFrames | None:
    """Return the unprocessed frames of a run; None if its plan is unknown."""
    if run.experiment.code:
        return _from_session(run)
    try:
        experiment = settle(run.experiment, run.simulated)
        kernel = kernel_named(experiment.kernel)
    except Refused:
        return None  # recorded by a version with other kernels or choices
    if not 1 <= run.n <= kernel.max_n:
        return None
    shape = replace(experiment.shape(run.n), order=_order(run))
    if kernel.ordered is not None and shape.padded != run.padded:
        return None  # the elimination ordering is unknown
    return None if kernel.refuses(shape) else _frames_of_plan(kernel.id, shape)


def _order(run: Run) -> EliminationOrder | None:
    """Return the supernodes of a run, without the vertices; None if there are none, or if a forged session has no valid tree."""
    order = run.ordered
    if order is None or not len(order.sizes) == len(order.parents) == len(order.above):
        return None
    if sum(order.sizes) != run.n or min(order.sizes) < 1:
        return None
    if not all(parent == -1 or number < parent < len(order.parents) for number, parent in enumerate(order.parents)):
        return None
    return EliminationOrder(tuple(map(Supernode, order.sizes, order.parents, order.above)), order.directed)


def _from_session(run: Run) -> PlanFrames | None:
    """Return the recorded frames of a user kernel; None if they are missing or invalid."""
    steps = [step for part in run.plan for step in part.steps]
    if not steps or len(steps) != run.plan[0].of:
        return None
    rounds: list[tuple[int, Step]] = []
    for step in steps:
        reads, writes = (tuple(Rect(*cells) for cells in rects) for rects in (step.reads, step.writes))
        if not all(r.top < r.bottom <= run.padded and r.left < r.right <= run.padded for r in (*reads, *writes)):
            return None
        rounds.append((step.round, Step("", step.phase, (), Cost(step.relaxations, 0), reads, writes)))
    return PlanFrames(run.padded, iter(rounds), tuple)


@lru_cache(maxsize=8)
def _frames_of_plan(kernel: str, shape: Shape) -> PlanFrames:
    return PlanFrames.of(kernel_named(kernel), shape)


class Scene(NamedTuple):
    """A picture of the matrix: the highlighted rectangles and the caption."""

    side: int  # vertices
    captions: tuple[str, ...]  # longest first; a screen shows the longest that fits
    sources: tuple[Rect, ...] = ()
    targets: tuple[Rect, ...] = ()
    filled: float = 0.0  # finished share of the rows, if no step is shown
    deal: Deal | None = None  # distribution over the ranks, if there are several
    sent: Rect | None = None  # panel that is being broadcast


FOLLOWED = 5.0  # rounds per second that a reader can follow; with more, the picture changes every STILL seconds
STILL = 0.5
MIN_PASS = 2.0  # seconds of a repetition below which only the share is shown


def slow_scene(frames: PlanFrames, run: Run, place: int) -> Scene:
    """Return the picture of frame number `place` in slow motion, which repeats endlessly."""
    steps = frames.slowly()
    return _lit(frames, steps[place % len(steps)], run, "slow motion: ")


def scene(frames: PlanFrames, run: Run, now: float) -> Scene:
    """Return the picture of a run at session time `now`.

    The warm-up reports its steps. A timed repetition reports nothing, so its round is estimated from the time of a repetition,
    and the caption begins with "about". Short repetitions show the finished share of the work. A finished run shows its last
    round, an interrupted one no round.
    """
    if run.state == "running":
        estimate = _progress(run, now)
        share, seconds, about = estimate or (0.0, 0.0, "")
        if seconds >= MIN_PASS and frames.rounds > 1:
            step = STILL / seconds if frames.rounds / seconds > FOLLOWED else 0.0
            return _followed(frames, run, share // step * step if step else share, seconds, about)
        if estimate is None or run.progress is None:
            return Scene(frames.side, (doing(run.stage),), deal=frames.deal)
        share = min(run.progress.done, 1.0)
        done = f"{100 * share:3.0f} %"
        return Scene(frames.side, (f"{doing(run.stage)}: {done} done", done), filled=share, deal=frames.deal)
    if run.state != "done":
        return Scene(frames.side, (run.state,), deal=frames.deal)
    # rounds may share a frame, which then has the number of an earlier round
    last = frames.heaviest(frames.relaxations)._replace(round=frames.rounds)
    return _lit(frames, last, run, "finished: ")


def raced_scene(frames: PlanFrames, run: Run, share: float, seconds: float) -> Scene:
    """Return the picture at that share of a repetition of that many seconds."""
    done = Scene(frames.side, ("finished",), filled=1.0, deal=frames.deal)
    return _followed(frames, run, share, seconds, "") if share < 1 else done


def _followed(frames: PlanFrames, run: Run, share: float, seconds: float, about: str) -> Scene:
    """Return the picture of the step at that share of a repetition, or the heaviest of its round if steps are too short."""
    # rounded, because the share is a quotient of integers, and a step ends exactly at such a quotient
    done = round(max(share, 0.0) * frames.relaxations)
    return _lit(frames, frames.at(done) if frames.rounds <= FOLLOWED * seconds else frames.heaviest(done), run, about)


def _progress(run: Run, now: float) -> tuple[float, float, str] | None:
    """Return the progress of the current repetition (0 to 1), its seconds, and the prefix "about " for an estimate; else None."""
    if run.stage not in STAGES or not STAGES[run.stage].passes:
        return None
    if run.stage == "warm-up":
        if run.progress is None or not run.progress.done:
            return 0.0, 0.0, ""
        done = min(run.progress.done, 1.0)
        return done, (run.progress.t - run.stage_since) / done, ""
    seconds = run.seconds if run.samples else run.stage_seconds("warm-up")
    if not seconds:
        return 0.0, 0.0, ""
    since = run.samples[-1].t if run.samples and run.stage == "clean" else run.stage_since
    return min((now - since) / seconds, 1.0), seconds, "about "


def _lit(frames: PlanFrames, frame: PlanFrame, run: Run, about: str) -> Scene:
    count = f"{about}round {frame.round} of {frames.rounds}"
    phase = run.phase_title(frame.phase)
    short = f"{frame.round}/{frames.rounds}"
    captions = (f"{count} · {phase}", count, f"{about}{short} · {phase}", f"{about}{short}", short)
    captions = captions if frames.rounds > 1 else (f"{about}{phase}", phase)
    return Scene(frames.side, captions, frame.sources, frame.targets, deal=frames.deal, sent=frame.sent)
