"""Plans of all kernels, and the order of their steps."""

import importlib
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fwtui_kernels
from fwtui.analysis.plan_checks import ancestors, check_plan, races
from fwtui_kernels import registry
from fwtui_kernels.parts import blocked
from fwtui_kernels.plan import DTYPES, ITEMSIZE, NO_EDGE, Cost, Kernel, Rect, Shape, Step

KERNELS = list(registry().values())
SIZES = (1, 4, 13, 29)
# kernels that keep copies of tiles, in words of 32 bits also where cells have 16 (see test_register_tiled.py)
KEEP_COPIES = {"register-tiled", "look-ahead", "distributed", "sparse"}


def shapes(kernel: Kernel) -> Iterator[Shape]:
    options = tuple(sorted((o.name, o.default) for o in kernel.options))
    for n, tile, dtype in product(SIZES, (4, 8) if kernel.tiles else (1,), kernel.dtypes):
        yield Shape(n, tile, dtype, options=options)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
def test_every_plan_is_sound(kernel: Kernel) -> None:
    assert check_plan(kernel) == []
    for shape in shapes(kernel):
        plan, stepwise = (list(kernel.plan(shape, how)) for how in (False, True))
        assert plan == list(kernel.plan(shape, False))
        for step in (*plan, *stepwise):
            assert step.op and all(isinstance(a, int) for a in step.args)
            assert step.cost.relaxations > 0 and step.cost.link_bytes >= 0
        assert len({s.cost.device_bytes > 0 for s in plan}) == 1, "bytes are claimed for every step or for none"
        assert len(stepwise) >= len(plan)
        for sums in (lambda cost: cost.relaxations, lambda cost: cost.device_bytes):
            assert sum(sums(s.cost) for s in plan) == sum(sums(s.cost) for s in stepwise)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
def test_bytes_follow_the_itemsize(kernel: Kernel) -> None:
    costs = {t: sum(s.cost.device_bytes for s in kernel.plan(Shape(29, 4, t), False)) for t in kernel.dtypes}
    if kernel.id in KEEP_COPIES:
        assert costs["float32"] == costs["int32"] and costs["int32"] / 2 < costs["int16"] < costs["int32"]
    else:
        assert len({cost / (kernel.itemsize or ITEMSIZE[t]) for t, cost in costs.items()}) == 1


def test_blocked_rounds_write_every_tile_once_and_no_edge_leaves_room_for_one_addition() -> None:
    assert [Shape(n, tile).padded for n, tile in ((1, 1), (1, 32), (32, 32), (33, 32), (29, 4))] == [1, 32, 32, 64, 32]
    shape = Shape(29, 4)
    plan = list(blocked.plan(shape, False))
    for p in range(8):
        count = np.zeros((32, 32), dtype=int)
        for w in (w for step in plan if step.args == (p,) for w in step.writes):
            count[w.top : w.bottom, w.left : w.right] += 1
        assert (count == 1).all()
    assert [s.cost.relaxations for s in plan[:3]] == [64, 14 * 64, 49 * 64]
    assert {t: type(NO_EDGE[t]) for t in DTYPES} == {"float32": float, "int32": int, "int16": int, "float64": float}
    for dtype in ("int32", "int16"):
        assert 2 * NO_EDGE[dtype] <= np.iinfo(dtype).max
        assert 4 * NO_EDGE[dtype] > np.iinfo(dtype).max - 4, "the sentinel leaves no more room than it needs"


def one_cell(lane: int, after: tuple[int, ...] = (), cell: int = 0, write: bool = True, buffer: int = 0) -> Step:
    rect = (Rect(cell, 0, cell + 1, 1, buffer),)
    return Step("touch", "all", (), Cost(1, 0), rect, rect if write else (), lane, after)


def test_order_follows_lanes_and_after_through_other_lanes() -> None:
    assert races([one_cell(0), one_cell(1)]) == [(0, 1)]
    assert races([one_cell(0), one_cell(1, after=(0,))]) == []
    assert races([one_cell(0, write=False), one_cell(1)]) == [(0, 1)]
    assert races([one_cell(0), one_cell(1, write=False)]) == [(0, 1)]
    assert races([one_cell(0, write=False), one_cell(1, write=False)]) == []
    assert races([one_cell(0), one_cell(1, cell=1)]) == []
    assert races([one_cell(0), one_cell(1, buffer=1)]) == []
    # 0 -> 1 by lane, 1 -> 2 by after, 2 -> 3 by after: 0 and 3 are ordered over two other lanes
    chain = [one_cell(0), one_cell(0, cell=1), one_cell(1, (1,), cell=2), one_cell(2, (2,))]
    assert races(chain) == []
    assert ancestors(chain) == [0b0, 0b1, 0b11, 0b111]


@pytest.mark.parametrize("after", [(1,), (2,), (-1,)])
def test_waiting_for_a_later_step_is_an_error(after: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is not before it"):
        ancestors([one_cell(0), one_cell(1, after), one_cell(0)])


SIDE = st.integers(0, 5)
RECT = st.builds(lambda y, x, high, wide, of: Rect(y, x, y + high + 1, x + wide + 1, of), *[SIDE] * 4, st.integers(0, 1))


@given(RECT, RECT)
def test_rectangles_overlap_where_they_share_a_cell(a: Rect, b: Rect) -> None:
    def cells(r: Rect) -> set[tuple[int, int, int]]:
        return {(r.buffer, i, j) for i in range(r.top, r.bottom) for j in range(r.left, r.right)}

    assert a.overlaps(b) == b.overlaps(a) == bool(cells(a) & cells(b))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
def test_every_kernel_has_a_complete_description(kernel: Kernel) -> None:
    assert kernel.id and kernel.id == kernel.id.lower() and "," not in kernel.id and " " not in kernel.id
    assert kernel.title and kernel.papers and all(kernel.papers) and all(kernel.phases.values())
    assert kernel.summary.endswith(".") and len(kernel.summary) < 200
    assert len(kernel.lesson) > 100 and kernel.lesson.endswith(".")
    assert kernel.backend in ("cpu", "cuda")
    assert kernel.dtypes and set(kernel.dtypes) <= set(DTYPES)
    assert kernel.launch_modes and kernel.memories and kernel.memories[0] == "device"
    assert not kernel.tiles or kernel.default_tile in kernel.tiles
    assert bool(kernel.tiles) == bool(kernel.tiles_for(False)) == bool(kernel.tiles_for(True))
    for option in kernel.options:
        assert option.default in option.values and option.help and option.name.isidentifier()


def test_the_ladder_is_in_file_order_and_rungs_import_only_earlier_ones() -> None:
    folder = Path(fwtui_kernels.__file__).parent
    names = sorted(f.stem for f in folder.glob("k[0-9][0-9]_*.py"))
    assert [importlib.import_module(f"fwtui_kernels.{name}").KERNEL.id for name in names] == [k.id for k in KERNELS]
    assert [k.id for k in KERNELS] == list(registry())
    for file in Path(fwtui_kernels.__path__[0]).rglob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) .*\b(k\d\d_\w+)", file.read_text(), re.MULTILINE)
        rung = re.match(r"k\d\d_", file.stem)
        assert all(rung and other < file.stem for other in imported), (file.name, imported)


@pytest.fixture
def another_rung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder whose kNN_name.py files are on the ladder too."""
    monkeypatch.setattr(fwtui_kernels, "__path__", [*fwtui_kernels.__path__, str(tmp_path)])
    yield tmp_path
    for name in [m for m in sys.modules if m.startswith("fwtui_kernels.k98_")]:
        del sys.modules[name]


def test_adding_a_file_adds_a_kernel(another_rung: Path) -> None:
    source = "from dataclasses import replace\nfrom fwtui_kernels import registry\n"
    source += "KERNEL = replace(registry()['serial'], id={!r})\n"
    (another_rung / "k98_more.py").write_text(source.format("one-more"))
    (another_rung / "helper.py").write_text("raise RuntimeError\n")
    assert list(registry.__wrapped__()) == [*registry(), "one-more"]
    (another_rung / "k98_twin.py").write_text(source.format("serial"))
    with pytest.raises(ValueError, match="share an id"):
        registry.__wrapped__()


def test_the_readmes_example_is_a_sound_rung(another_rung: Path) -> None:
    readme = Path(fwtui_kernels.__path__[0]).parent / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    example = next(block for block in blocks if "KERNEL = Kernel" in block)
    (another_rung / "k98_example.py").write_text(example)
    kernel = registry.__wrapped__()["square-blocks"]
    test_every_plan_is_sound(kernel)
    test_bytes_follow_the_itemsize(kernel)
    test_every_kernel_has_a_complete_description(kernel)
