"""The plan and the description of the distributed rungs: one matrix over several processes. Plain Python.

Rows of tiles are distributed cyclically, row p to rank p mod ranks, so that each rank has work until the last round. No rank
holds the whole matrix. A round needs only row p from another rank, so its owner broadcasts it once per round:

    owner of p + 1    stream 1 (ahead)  column, rest of row p + 1 | pivot p + 1, row p + 1 |
                      stream 2 (wire)                                                      | broadcast p + 1 ...
    every rank        stream 0          column, rest of its other rows of round p ----------------------------|-> round p + 1

The broadcast of round p + 1 overlaps with round p on all ranks (look-ahead). Two panel buffers alternate, because round p still
reads the old one. Each rank computes column p of its rows: tile (i, p) times the solved pivot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fwtui_kernels.parts.blocked import spans_outside
from fwtui_kernels.plan import EVERY, Cost, Kernel, Rect, Shape, Step

MAIN, AHEAD, WIRE = range(3)  # streams of a rank; of two ready ones the higher number has priority
PHASES = {"pivot": "pivot", "panels": "panels", "broadcast": "broadcast", "rest": "remainder"}
PAPERS = (
    "J. F. Jenq, S. Sahni, All Pairs Shortest Paths on a Hypercube Multiprocessor, ICPP 1987",
    "G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm, JEA 8, 2003",
    "P. Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, HPDC 2021",
)
# buffers of a rank: the pivot by columns; row p; the pivot by rows; column p by columns. ROW and SQUARE are broadcast, and odd
# rounds use the buffers with the next number
MATRIX, SOLVED, ROW, SQUARE, COLUMN = 0, 1, 2, 4, 6
BUFFERS = 6  # buffers of each rank, excluding the matrix


def plan(shape: Shape, stepwise: bool, whole_words: bool = True, together: bool = False) -> Iterator[Step]:
    """Return the steps of all ranks, in an order in which each rank can launch its steps one after the other.

    With `whole_words`, copies consist of words of at least 4 bytes, even for cells of 2 bytes, as on a GPU. With `together`,
    one step replaces the concurrent steps of all ranks, for a picture.
    """
    tile, n, ranks, word = shape.tile, shape.padded, shape.ranks, shape.word_bytes if whole_words else shape.itemsize
    rounds = n // tile
    owned = [range(rounds)] if together else [range(rank, rounds, ranks) for rank in range(ranks)]  # rows of tiles
    steps: list[Step] = []
    received: tuple[int, ...] = ()  # the step after which every rank has the panel of the round
    before: dict[int, tuple[int, ...]] = {}  # the latest step on stream 0 of each rank

    def add(step: Step) -> tuple[int, ...]:
        steps.append(step)
        return (len(steps) - 1,)

    def make_panel(p: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Solve the pivot, compute row p, and broadcast both."""
        broadcasts = add(_pivot(shape, word, p, after))
        if rounds > 1:
            broadcasts = add(_row(shape, word, p))
        if ranks == 1:
            return broadcasts
        # the broadcast overwrites each rank's older panel, so it waits for the steps that read it
        return add(_broadcast(shape, word, p, tuple(sorted({*broadcasts, *(i for last in before.values() for i in last)}))))

    for p in range(rounds):
        if p == 0:
            received = make_panel(0, ())
        following, own = p + 1, (p + 1) % ranks
        coming = received
        if following < rounds:
            ahead = range(following, following + 1)
            waits = tuple(sorted({*received, *before.get(own, ())}))
            add(_column(shape, word, own, p, [ahead], AHEAD, waits))
            add(_rest(shape, word, own, p, [ahead], AHEAD))
            coming = make_panel(following, ())
        for rank, own_rows in enumerate(owned):
            if rows := _without(own_rows, p, following):
                add(_column(shape, word, rank, p, rows, MAIN, received))
                before[rank] = add(_rest(shape, word, rank, p, rows, MAIN))
        received = coming
    return iter(steps)


def buffer(rank: int, which: int, p: int = 0) -> int:
    """Return the number of a rank's buffer in the plan of all ranks."""
    return which + rank * BUFFERS + (p % 2 if which in (ROW, SQUARE) else 0)


def _pivot(shape: Shape, word: int, p: int, after: tuple[int, ...]) -> Step:
    tile, owner = shape.tile, p % shape.ranks
    own, copy = Rect(p * tile, p * tile, (p + 1) * tile, (p + 1) * tile), Rect(0, 0, tile, tile)
    copies = (copy._replace(buffer=buffer(owner, SOLVED)), copy._replace(buffer=buffer(owner, SQUARE, p)))
    cost = Cost(tile**3, tile**2 * (2 * shape.itemsize + 2 * word))
    return Step("pivot", "pivot", (p, p // shape.ranks), cost, (own,), (own, *copies), AHEAD, after, owner)


def _row(shape: Shape, word: int, p: int) -> Step:
    """Return the step that computes row p, in the matrix and in the buffer that is broadcast."""
    tile, owner = shape.tile, p % shape.ranks
    low, high = p * tile, (p + 1) * tile
    spans = spans_outside(low, high, shape.padded)
    row = [Rect(low, left, high, right) for left, right in spans]
    copies = [Rect(0, left, tile, right, buffer(owner, ROW, p)) for left, right in spans]
    solved = Rect(0, 0, tile, tile, buffer(owner, SOLVED))
    tiles = shape.padded // tile - 1
    cost = Cost(tiles * tile**3, tiles * tile**2 * (3 * shape.itemsize + word))
    return Step("row", "panels", (p, p // shape.ranks), cost, (solved, *row), (*row, *copies), AHEAD, (), owner)


def _broadcast(shape: Shape, word: int, p: int, after: tuple[int, ...]) -> Step:
    tile, owner = shape.tile, p % shape.ranks
    spans = spans_outside(p * tile, (p + 1) * tile, shape.padded)

    def copies(rank: int) -> tuple[Rect, ...]:
        rows = (Rect(0, left, tile, right, buffer(rank, ROW, p)) for left, right in spans)
        return (*rows, Rect(0, 0, tile, tile, buffer(rank, SQUARE, p)))

    size = panel_bytes(shape, word)
    others = [rect for rank in range(shape.ranks) if rank != owner for rect in copies(rank)]
    # every rank except the owner receives the panel; the owner reads it at least once
    cost = Cost(0, shape.ranks * size, (shape.ranks - 1) * size)
    return Step("broadcast", "broadcast", (p, owner), cost, copies(owner), tuple(others), WIRE, after, EVERY)


def panel_bytes(shape: Shape, word: int) -> int:
    """Return the bytes of a round's broadcast: row p, and the solved pivot in words of `word` bytes."""
    return shape.tile * (shape.padded * shape.itemsize + shape.tile * word)


def _column(shape: Shape, word: int, rank: int, p: int, rows: Sequence[range], lane: int, after: tuple[int, ...]) -> Step:
    """Return the step that computes column p of some of the rank's rows of tiles, in the matrix and in a copy by columns."""
    tile = shape.tile
    own = tuple(Rect(low, p * tile, high, (p + 1) * tile) for low, high in _runs(shape, rows))
    copies = [Rect(0, low, tile, high, buffer(rank, COLUMN)) for low, high in _runs(shape, rows)]
    square = Rect(0, 0, tile, tile, buffer(rank, SQUARE, p))
    tiles = sum(map(len, rows))
    cost = Cost(tiles * tile**3, tiles * tile**2 * (2 * shape.itemsize + 2 * word))
    return Step("column", "panels", _args(shape, p, rows), cost, (square, *own), (*own, *copies), lane, after, rank)


def _rest(shape: Shape, word: int, rank: int, p: int, rows: Sequence[range], lane: int) -> Step:
    """Return the step that relaxes all tiles of some of the rank's rows except column p."""
    tile = shape.tile
    columns = spans_outside(p * tile, (p + 1) * tile, shape.padded)
    own = tuple(Rect(low, left, high, right) for low, high in _runs(shape, rows) for left, right in columns)
    reads = [Rect(0, low, tile, high, buffer(rank, COLUMN)) for low, high in _runs(shape, rows)]
    reads += [Rect(0, left, tile, right, buffer(rank, ROW, p)) for left, right in columns]
    tiles = sum(map(len, rows)) * (shape.padded // tile - 1)
    cost = Cost(tiles * tile**3, tiles * tile**2 * (3 * shape.itemsize + word))
    return Step("rest", "rest", _args(shape, p, rows), cost, (*reads, *own), own, lane, (), rank)


def _without(rows: range, first: int, last: int) -> list[range]:
    """Return the rows before `first` and after `last`, as at most two ranges."""
    before, upto = (len(range(rows.start, end, rows.step)) for end in (first, last + 1))
    parts = (rows[:before], rows[upto:]) if before < upto else (rows,)
    return [part for part in parts if part]


def _runs(shape: Shape, rows: Sequence[range]) -> list[tuple[int, int]]:
    """Return the vertices of some rows of tiles; neighbouring rows are one span."""
    tile = shape.tile
    spans = [[part] if part.step == 1 else [range(row, row + 1) for row in part] for part in rows]
    return [(span.start * tile, span.stop * tile) for spans_of_part in spans for span in spans_of_part]


def _args(shape: Shape, p: int, rows: Sequence[range]) -> tuple[int, ...]:
    """Return the arguments (round, first, gap, skipped, count) in the rank's numbering of its rows of tiles.

    `first` is the first row, `gap` the row at which `skipped` rows are skipped, and `count` the number of rows.
    """
    own = [range(part[0] // shape.ranks, part[-1] // shape.ranks + 1) for part in rows]
    return p, own[0].start, own[0].stop, own[-1].start - own[0].stop if own[1:] else 0, sum(map(len, rows))


# the fields that both distributed rungs share
rung = partial(
    Kernel,
    papers=PAPERS,
    phases=PHASES,
    plan=plan,
    together=partial(plan, stepwise=True, together=True),
    ranked=True,
    numbered=True,
)
