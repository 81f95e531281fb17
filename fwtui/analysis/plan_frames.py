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
MAX_RECORDED = 512  # in a session, of a user's kernel
SLOW_ROUNDS, SLOW_STEPS = 64, 8  # in slow motion: rounds that are shown, steps of a round
MAX_STEPS = 250_000  # of a plan; a longer one has no frames


class PlanFrame(NamedTuple):
    """One step (in a long plan, the heaviest of several). Rectangles are in vertices, in any of the matrices."""

    first: int  # relaxations done before it
    weight: int  # relaxations that it does
    round: int  # from 1
    phase: str
    sources: tuple[Rect, ...]  # read, and not written
    targets: tuple[Rect, ...]  # written
    sent: Rect | None = None  # on its way from its owner to all other ranks


class Deal(NamedTuple):
    """How rows of tiles are dealt out to ranks, in turn."""

    ranks: int
    tile: int

    def owner(self, row: int) -> int:
        """The rank that holds a row of the matrix."""
        return row // self.tile % self.ranks


class PlanFrames:
    """The frames of one plan, made a few at a time: `process()` until it is `complete`.

    Copies of tiles for later steps are not in the picture.
    """

    def __init__(
        self,
        side: int,
        rounds: Iterator[tuple[int, Step]],
        places: Callable[[Iterable[Rect]], tuple[Rect, ...]],
        deal: Deal | None = None,
        most_frames: int = MAX_FRAMES,
        most_steps: int = MAX_STEPS,
    ):
        """Of steps with their rounds; `places` are those rectangles that are places of the matrix; `deal`: over several ranks.

        A longer plan shares its frames among steps, and one of more steps than `most_steps` has no frames.
        """
        self._most_frames, self._most_steps = most_frames, most_steps
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
    def of(cls, kernel: Kernel, shape: Shape, **limits: int) -> PlanFrames:
        """Of the kernel's plan; limits as in PlanFrames()."""
        deal = Deal(shape.ranks, shape.tile) if shape.ranks > 1 else None
        steps = kernel.together(shape) if deal and kernel.together else kernel.plan(shape, True)
        return cls(shape.padded, kernel.rounds(steps), kernel.places, deal, **limits)

    def plan_steps(self) -> tuple[events.PlanStep, ...]:
        """The frames as a session records them, once complete; none if one has too many rectangles."""
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
        """Process that many more steps of the plan; return whether it is complete."""
        if not self.complete:
            count = self._processed
            for number, step in islice(self._steps, max(0, min(steps, self._most_steps - count))):
                self._take(number, step)
            self.complete = self._processed < min(count + steps, self._most_steps)
        return self.complete

    @property
    def hopeless(self) -> bool:
        """Whether the plan is too long to be shown."""
        return not self.complete and self._processed >= self._most_steps

    def at(self, done: int) -> PlanFrame:
        """The step that runs once `done` relaxations have been done. Only once complete."""
        return self._frames[max(0, bisect_right(self._frames, done, key=lambda frame: frame.first) - 1)]

    def heaviest(self, done: int) -> PlanFrame:
        """The step that does most of that round's work."""
        here = self.at(done).round
        return max((frame for frame in self._frames if frame.round == here), key=lambda frame: frame.weight)

    def slowly(self, most_rounds: int = SLOW_ROUNDS, most_steps: int = SLOW_STEPS) -> list[PlanFrame]:
        """The steps of some evenly chosen rounds, in order, for slow motion."""
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
            self._sent = None  # it is there, and the next one is not ready
        frame = PlanFrame(self.relaxations, step.cost.relaxations, number, step.phase, sources, targets, self._sent)
        self.relaxations += step.cost.relaxations
        if self._processed % self._every:
            self._frames[-1] = _heavier(self._frames[-1], frame)
        else:
            self._frames.append(frame)
        self._processed += 1
        if len(self._frames) > self._most_frames:
            self._frames = _halved(self._frames)
            self._every *= 2


def _heavier(first: PlanFrame, second: PlanFrame) -> PlanFrame:
    """The one of two neighbours with more work, starting where the first begins."""
    return second._replace(first=first.first) if second.weight > first.weight else first


def _halved(frames: list[PlanFrame]) -> list[PlanFrame]:
    """The heavier frame of every two."""
    return [reduce(_heavier, frames[place : place + 2]) for place in range(0, len(frames), 2)]


def frames_of(run: Run) -> PlanFrames | None:
    """The frames of a run, none processed yet; None if its experiment has none (or is not known yet)."""
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
        return None  # its order is not (or no longer) known
    return None if kernel.refuses(shape) else _frames_of_plan(kernel.id, shape)


def _order(run: Run) -> EliminationOrder | None:
    """The supernodes of a run, without the vertices; None if it has none, or a made-up session has no tree."""
    order = run.ordered
    if order is None or not len(order.sizes) == len(order.parents) == len(order.above):
        return None
    if sum(order.sizes) != run.n or min(order.sizes) < 1:
        return None
    if not all(parent == -1 or number < parent < len(order.parents) for number, parent in enumerate(order.parents)):
        return None
    return EliminationOrder(tuple(map(Supernode, order.sizes, order.parents, order.above)), order.directed)


def _from_session(run: Run) -> PlanFrames | None:
    """The frames of a user's kernel, from the session alone."""
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
    """One picture of the matrix: what it lights up, and the words under it."""

    side: int  # vertices
    words: tuple[str, ...]  # from the longest to the shortest text
    sources: tuple[Rect, ...] = ()
    targets: tuple[Rect, ...] = ()
    filled: float = 0.0  # share of the rows done, if no step is followed
    deal: Deal | None = None  # over several ranks
    sent: Rect | None = None  # what its owner sends to all other ranks


FOLLOWED = 5.0  # rounds per second that the eye can follow; above this only one every half second is shown
STILL = 0.5  # seconds that a picture then stays
MIN_PASS = 2.0  # seconds of a pass below which only the share is shown


def slow_scene(frames: PlanFrames, run: Run, place: int) -> Scene:
    """Step number `place` of the frames in slow motion, repeating endlessly."""
    steps = frames.slowly()
    return _lit(frames, steps[place % len(steps)], run, "slow motion: ")


def scene(frames: PlanFrames, run: Run, now: float) -> Scene:
    """The picture of a run at session time `now`: its actual round if that is known and slow enough.

    A warm-up reports its steps. A clean pass reports nothing while it runs, so its round is estimated from the time of a
    pass, and the text says "about". Passes too short to see show the share of the work done; a finished run shows its
    last round, and one that ended early no round.
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
        return Scene(
            frames.side,
            (f"{doing(run.stage)}: {100 * share:3.0f} % done", f"{100 * share:3.0f} %"),
            filled=share,
            deal=frames.deal,
        )
    if run.state != "done":
        return Scene(frames.side, (run.state,), deal=frames.deal)
    return _lit(
        frames, frames.heaviest(frames.relaxations)._replace(round=frames.rounds), run, "finished: "
    )  # of many it is one before


def raced_scene(frames: PlanFrames, run: Run, share: float, seconds: float) -> Scene:
    """The picture at that share of one pass that takes that many seconds."""
    done = Scene(frames.side, ("finished",), filled=1.0, deal=frames.deal)
    return _followed(frames, run, share, seconds, "") if share < 1 else done


def _followed(frames: PlanFrames, run: Run, share: float, seconds: float, about: str) -> Scene:
    """The step at that share of a pass of that many seconds, or the heaviest of its round if steps are too short to follow."""
    # rounded: the share was a quotient of whole numbers, and a step ends at exactly such a number
    done = round(max(share, 0.0) * frames.relaxations)
    return _lit(frames, frames.at(done) if frames.rounds <= FOLLOWED * seconds else frames.heaviest(done), run, about)


def _progress(run: Run, now: float) -> tuple[float, float, str] | None:
    """The present pass's progress (0..1), the length of a pass, and "about " for an estimate; None if no pass is running."""
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
    phase = next((p.title for p in run.phase_names if p.key == frame.phase), frame.phase)
    short = f"{frame.round}/{frames.rounds}"
    words = (f"{count} · {phase}", count, f"{about}{short} · {phase}", f"{about}{short}", short)
    texts = words if frames.rounds > 1 else (f"{about}{phase}", phase)
    return Scene(frames.side, texts, frame.sources, frame.targets, deal=frames.deal, sent=frame.sent)
