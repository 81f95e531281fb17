"""The elimination tree of a sparse graph, drawn in text."""

import pytest

from fwtui.analysis.sparsity import tree
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.stream.events import Ordered


def test_separators_stand_over_the_halves_that_they_cut_in_as_many_levels_as_have_room() -> None:
    drawn = tree(Ordered(t=0.0, run=1, sizes=(12, 8, 30, 7, 9), parents=(2, 2, -1, 4, -1)), 72)
    assert drawn == [" 30", " ┌┴─┐", "12  8", "the upper levels of 5 supernodes by size, beside 1 tree that no edge joins to it"]
    ordered = load_model(shipped_folder() / "h200-sparse-grid.fwt.jsonl.gz")[0].runs[4].ordered
    assert ordered is not None
    drawn = {width: tree(ordered, width) for width in (72, 20, 3)}
    assert [len(rows) for rows in drawn.values()] == [8, 6, 2]
    assert all(len(row) <= width for width, rows in drawn.items() for row in rows[:-1])
    sizes = [int(word) for row in drawn[72][:-1:2] for word in row.split()]
    assert sizes[0] == ordered.sizes[ordered.parents.index(-1)] == 128 and len(sizes) == 15


@pytest.mark.parametrize("parents", [(0, 5, 3, 7), (3,) * 4095 + (-1,), (*range(1, 4096), -1)])
def test_a_forged_or_odd_tree_is_drawn_as_well(parents: tuple[int, ...]) -> None:
    assert 2 <= len(tree(Ordered(t=0.0, run=1, sizes=(1,) * len(parents), parents=parents), 72)) <= 8
    assert tree(Ordered(t=0.0, run=1), 72) == []
