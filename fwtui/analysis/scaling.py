"""A model of one graph on several devices: how long rounds take, and how well the devices are used.

A round lasts as long as the longer of two: the owner of the next panel must make it and send it (`path`), and every rank has
its own rows to relax (`rest`). All rounds of a size are alike, as ranks take turns. The seconds of launches are taken from
the phase passes of runs, those of a broadcast from runs on two devices or more; nothing is known in advance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil, isqrt, sqrt
from statistics import median
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.events import Part
from fwtui.stream.model import Model
from fwtui.stream.run import BROADCAST, Run
from fwtui_kernels.forms import FORMS, PLAIN
from fwtui_kernels.parts.distributed import panel_bytes
from fwtui_kernels.parts.tuning import tuning_of
from fwtui_kernels.plan import Shape

LEAST = 1e-12  # seconds; what a made-up session says took less is no measurement
POOR = 0.7  # an efficiency below which devices are wasted
CLEAR = 1.05  # times as fast; less is within the error of the model
MOST_RANKS = 512
ON_MACHINE = 8  # devices of one machine, where nothing else is known
SOURCE = "Sao et al., HPDC 2021"  # distributes in two dimensions


class LinearCost(NamedTuple):
    """Seconds that grow with an amount: relaxations of a launch, bytes of a broadcast."""

    start: float
    each: float

    def at(self, amount: float) -> float:
        return self.start + self.each * amount


class Rates(NamedTuple):
    """What was measured on one device, and of the link between two."""

    pivot: LinearCost
    panels: LinearCost
    rest: LinearCost
    link: LinearCost | None = None  # None: no run on several devices was measured
    lanes: bool = False  # the next panel is made beside the rest (GPU), not before it (CPU)
    turn: float = 0.0  # seconds until a multiprocessor is empty, which the pivot and a broadcast wait for while the rest runs
    round: float = 0.0  # seconds of a round on one device besides its launches
    broadcast_share: float = (
        0.0  # share of a device that a broadcast occupies, from when the rank could receive it until it is there
    )


class Measured(NamedTuple):
    """A finished run: its shape, its time, and its phase pass if it has one, whose seconds are the mean of the ranks."""

    shape: Shape
    seconds: float
    parts: tuple[Part, ...] = ()
    lanes: bool = False
    turn: float = 0.0  # relaxations of the rest that a device does while a multiprocessor runs empty


class Predicted(NamedTuple):
    """A pass: its seconds, and of a round the owner's critical path, the broadcast in it, and the rest of a rank."""

    seconds: float
    path: float
    broadcast: float
    rest: float


def predict(rates: Rates, shape: Shape, two_dimensional: bool = False) -> Predicted:
    """A pass of that shape. Without a measured link only of one rank."""
    tiles = shape.padded // shape.tile
    work = shape.tile**3
    down, across = grid(shape.ranks) if two_dimensional else (shape.ranks, 1)
    rows, columns = ceil(tiles / down), ceil(tiles / across)
    # of the next round's panels, on the rank that has most of them: a row, and in two dimensions also a column
    urgent = columns - 1 + (rows if across > 1 else 0)
    transfer = _broadcast(rates, shape, down, across)
    column = rates.panels.at(work) if across == 1 else 0.0
    first = rates.rest.at(work * urgent)
    pivot, panels = rates.pivot.at(work), rates.panels.at(work * urgent)
    # a rank's launches in a round, on average over the rounds in which it owns a panel and those in which it does not
    high, wide = rows - 1 / down, columns - 1 / across
    work_seconds = rates.rest.at(work * high * wide) + rates.panels.each * work * (high / across + wide / down) + rates.round
    if across == 1:  # in two dimensions column p is made ahead, too, by a column of ranks
        work_seconds += rates.panels.start
    if not rates.lanes:
        work_seconds += (column + rates.rest.start + pivot + rates.panels.start) / shape.ranks
    begun = column + first
    begun += min(rates.turn, max(0.0, work_seconds - begun)) + pivot + panels
    path = begun
    if shape.ranks > 1:
        path += min(rates.turn, max(0.0, work_seconds - begun)) + transfer
        work_seconds += rates.broadcast_share * (path - (path - transfer) / shape.ranks)
    opening = pivot + panels + transfer
    return Predicted(opening + (tiles - 1) * max(path, work_seconds) + work_seconds, path, transfer, work_seconds)


def _broadcast(rates: Rates, shape: Shape, down: int, across: int) -> float:
    """Seconds until every rank has a round's panels."""
    if shape.ranks == 1 or rates.link is None:
        return 0.0
    if across == 1:
        return rates.link.start * _hops(down, _machines(down)) + rates.link.each * panel_bytes(shape)
    # the pivot to its row and its column of ranks, which then make their panels; each of these to its ranks
    square = panel_bytes(shape) - shape.tile * shape.padded * shape.itemsize
    cells = shape.tile * (shape.padded / across + shape.padded / down)
    ways = _hops(down, min(down, _machines(shape.ranks))), _hops(across, _machines(across))
    hops = max(ways) + sum(ways)
    return rates.link.start * hops + rates.link.each * (2 * square + cells * shape.itemsize)


def _machines(ranks: int) -> int:
    return -(-ranks // ON_MACHINE)


def _hops(ranks: int, machines: int) -> int:
    """The levels of a binary tree of machines, and one inside them: two and four GPUs took equally long."""
    return (machines - 1).bit_length() + (ranks > machines)


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of ranks, as square as their number allows."""
    across = next(side for side in range(isqrt(ranks), 0, -1) if ranks % side == 0)
    return ranks // across, across


def fit(runs: Iterable[Measured]) -> Rates | None:
    """The rates that these runs show; None without a phase pass on one device or more."""
    timed = list(runs)
    phased = [run for run in timed if run.parts]
    lines = {phase: _line(_launches(phased, phase)) for phase in ("pivot", "panels", "rest")}
    pivot, panels, rest = lines["pivot"], lines["panels"], lines["rest"]
    if pivot is None or panels is None or rest is None:
        return None
    link = _line(_launches(phased, BROADCAST))
    rates = Rates(pivot, panels, rest, link, phased[0].lanes, median(run.turn for run in phased) * rest.each)
    alone, several = ([run for run in timed if (run.shape.ranks > 1) is many] for many in (False, True))
    if alone:
        more = median((run.seconds - predict(rates, run.shape).seconds) / _rounds(run.shape) for run in alone)
        rates = rates._replace(round=max(0.0, more))
    estimates = [_broadcast_share(rates, run) for run in several] if link is not None else []
    shares = [share for share in estimates if share is not None]
    return rates._replace(broadcast_share=min(1.0, max(0.0, median(shares)))) if shares else rates


def _broadcast_share(rates: Rates, run: Measured) -> float | None:
    """The share of a device that explains the run's time; None if a round is as long as its path."""
    none, whole = (predict(rates._replace(broadcast_share=share), run.shape) for share in (0.0, 1.0))
    rest = whole.rest - none.rest
    return (run.seconds - none.seconds) / _rounds(run.shape) / rest if none.rest > none.path and rest > 0 else None


def _rounds(shape: Shape) -> int:
    return shape.padded // shape.tile


def _launches(runs: Iterable[Measured], phase: str) -> list[tuple[float, float]]:
    """The mean amount and seconds of a launch of that phase in each run: relaxations, or the bytes that a rank receives."""
    points: list[tuple[float, float]] = []
    for run in runs:
        part = next((part for part in run.parts if part.phase == phase and part.launches), None)
        if part is not None and phase == BROADCAST:
            points.append((part.link_bytes / part.launches / max(1, run.shape.ranks - 1), part.seconds / part.launches))
        elif part is not None:
            # the ranks' mean seconds, and the sum of their launches
            points.append((part.relaxations / part.launches, part.seconds * run.shape.ranks / part.launches))
    return points


def _line(points: Sequence[tuple[float, float]]) -> LinearCost | None:
    """Least squares of relative errors, neither part negative; of one amount only, seconds in proportion."""
    usable = [(amount, seconds) for amount, seconds in points if amount > 0 and seconds > LEAST]
    if not usable:
        return None
    weights = [1 / seconds**2 for _, seconds in usable]
    total = sum(weights)
    x, y = (sum(w * point[i] for w, point in zip(weights, usable, strict=True)) / total for i in (0, 1))
    across = sum(w * (amount - x) ** 2 for w, (amount, _) in zip(weights, usable, strict=True))
    if across <= 1e-9 * total * x * x:
        return LinearCost(0.0, y / x)
    each = sum(w * (amount - x) * (seconds - y) for w, (amount, seconds) in zip(weights, usable, strict=True)) / across
    if each <= 0:
        return LinearCost(y, 0.0)
    return LinearCost(y - each * x, each) if y > each * x else LinearCost(0.0, y / x)


def measured(model: Model, run: Run) -> Measured:
    """What the model needs of a run that has a time, with a tile and a type that its kernel offers."""
    e = run.experiment
    shape, gpu = e.shape(run.n), model.gpu_of(run) if run.backend == "cuda" else None
    resident = next((occupancy.blocks for occupancy in run.occupancies if occupancy.op == "rest"), 0)
    turn = 0.0
    if gpu is not None and gpu.multiprocessors and resident:
        block = tuning_of(shape).rest
        turn = resident * block.high * block.wide * FORMS[PLAIN[e.dtype]].lanes * shape.tile * gpu.multiprocessors
    parts = run.phase_pass.parts if run.phase_pass is not None else ()
    return Measured(shape, run.seconds or 0.0, parts, run.backend == "cuda", turn)


def grown(n: int, ranks: int, tile: int) -> int:
    """The size at which each of several ranks holds as much as one at n, in whole tiles."""
    tile = max(tile, 1)
    return n if ranks == 1 else max(1, round(n * sqrt(ranks) / tile)) * tile


def shape_on(shape: Shape, ranks: int, weak: bool) -> Shape:
    """The shape of one device on several: the same graph, or (weak) one that fills each as much."""
    return replace(shape, ranks=ranks, n=grown(shape.n, ranks, shape.tile) if weak else shape.n)


def efficiency(rates: Rates, shape: Shape, ranks: int, weak: bool = False, two_dimensional: bool = False) -> float:
    """The predicted relaxations/s of each of several devices as a share of those of one; `shape` is the graph on one."""
    alone, there = predict(rates, replace(shape, ranks=1)), shape_on(shape, ranks, weak)
    prediction = predict(rates, there, two_dimensional)
    return (there.n / shape.n) ** 3 / ranks * alone.seconds / prediction.seconds


def doublings(most: int) -> Iterator[int]:
    """1, 2, 4, ... up to that many ranks."""
    return (1 << i for i in range(most.bit_length()))


def limits(rates: Rates, shape: Shape, weak: bool = False) -> list[str]:
    """Where rows of tiles stop paying, and where a distribution in two dimensions would be faster, in sentences."""
    if rates.link is None:
        return []
    several = list(doublings(MOST_RANKS))[1:]
    what = f"Model, {'growing from ' * weak}n = {shape.n}"
    rows, squares = ({p: efficiency(rates, shape, p, weak, flat) for p in several} for flat in (False, True))
    poor = next((ranks for ranks in several if rows[ranks] < POOR), None)
    if poor is None:
        sentences = [f"{what}: efficiency stays above {_percent(POOR)} up to {MOST_RANKS} devices."]
    else:
        prediction = predict(rates, shape_on(shape, poor, weak))
        path, broadcast = units.duration(prediction.path), units.duration(prediction.broadcast)
        takes = f"a round's next panel takes {path}, {broadcast} of it to be sent"
        falls = f"efficiency falls below {_percent(POOR)} at {poor} devices ({_percent(rows[poor])})"
        sentences = [f"{what}: {falls}: {takes}; the rest of the round takes {units.duration(prediction.rest)}."]
    better = next((p for p in several if all(squares[q] > CLEAR * rows[q] for q in several if q >= p)), None)
    if better is None:
        sentences.append(f"Tiles dealt out in two dimensions ({SOURCE}) would be nowhere more than 5 % faster.")
    else:
        gain = f"from {better} devices on ({_percent(squares[better])} instead of {_percent(rows[better])})"
        sentences.append(f"Tiles dealt out in two dimensions ({SOURCE}) would be faster {gain}: 2n/sqrt(P) rows are sent, not n.")
    return sentences


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
