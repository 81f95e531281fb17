"""Matrices larger than device memory: order of the plan, simulation with a memory cap, and compilation."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from in_simulator import in_simulator
from path_checks import floyd_warshall, random_matrix

from fwtui.analysis.plan_checks import legal_order, races
from fwtui_kernels.parts import register_tiled
from fwtui_kernels.plan import Shape, Step
from fwtui_kernels.streaming import out_of_core
from fwtui_kernels.streaming.out_of_core import BUFFERS, KERNEL, buffer_shapes, device_bytes, inner, streams


def plan_of(n: int, tile: int) -> list[Step]:
    return list(out_of_core.plan(Shape(n, tile), False))


def carry_out(steps: list[Step], order: list[int], shape: Shape, matrix: np.ndarray) -> np.ndarray:
    """Execute the plan in NumPy on arrays for device and host memory."""
    tile, side = shape.tile, shape.padded // shape.tile
    home = matrix.reshape(side, tile, side, tile).swapaxes(1, 2).reshape(-1, tile).copy()
    buffers = [home, *(np.full(size, np.nan) for _, size in sorted(buffer_shapes(shape).items()))]

    def at(buffer: int, slot: int) -> np.ndarray:
        return buffers[buffer][slot * tile : (slot + 1) * tile]

    for index in order:
        step = steps[index]
        if step.op == "in":
            at(*step.args[:2])[...] = at(0, step.args[2])
        elif step.op == "back":
            at(0, step.args[2])[...] = at(*step.args[:2])
        elif step.op == "product":
            own, left, top = (at(*step.args[i : i + 2]) for i in (0, 2, 4))
            np.minimum(own, (left.T[:, :, None] + top[None, :, :]).min(axis=1), out=own)
        elif step.op == "turn":
            at(*step.args[2:])[...] = at(*step.args[:2]).T
        elif step.op == "pivot" and step.args == (0,):
            at(1, 0)[...] = floyd_warshall(at(1, 0))
    return home.reshape(side, side, tile, tile).swapaxes(1, 2).reshape(shape.padded, shape.padded)


class TestPlan:
    @pytest.mark.parametrize(("n", "tile"), [(4, 4), (8, 4), (13, 4), (16, 4), (24, 8)])
    def test_every_order_that_the_lanes_allow_is_floyd_warshall(self, n: int, tile: int) -> None:
        shape = Shape(n, tile)
        steps = plan_of(n, tile)
        assert races(steps) == []
        matrix = random_matrix(shape.padded, n)
        expected = floyd_warshall(matrix)
        orders = [list(range(len(steps))), *(list(legal_order(steps, Random(seed))) for seed in range(3))]
        for order in orders:
            # the pivot's inner steps are one here, at their first: nothing else may come between them
            np.testing.assert_array_equal(carry_out(steps, order, shape, matrix), expected)

    def test_the_plan_states_its_cost(self) -> None:
        shape = Shape(16, 4, "int32")
        steps = plan_of(16, 4)
        assert sum(s.cost.relaxations for s in steps) == 16**3
        assert sum(s.cost.link_bytes for s in steps) == 2 * 4 * 16**2 * 4, "every cell in and back in every round"
        assert {s.phase for s in steps} == set(KERNEL.phases)
        inside = [s for s in plan_of(256 * 2, 256) if s.phase == "pivot"]
        assert len(inside) == 2 * (len(list(register_tiled.plan(inner(Shape(512, 256)), False))) + 1) == 2 * (2 * 3 + 1)
        assert device_bytes(shape) == ((2 + 8 + 3) * 16 + (2 + 2) * 16) * 4

    def test_work_and_copies_go_on_at_the_same_time_and_a_forgotten_wait_is_a_race(self) -> None:
        steps = plan_of(16, 4)
        rest = [i for i, s in enumerate(steps) if s.op == "in" and s.args[0] == out_of_core.STREAM and i > len(steps) // 2]
        for i, after in ((i, steps[i].after) for i in rest):
            # nothing waits for the tile just before it: that one is being worked on
            assert not after or (len(after) == 1 and sum(s.op == "product" for s in steps[after[0] : i]) >= BUFFERS - 1)
        steps = plan_of(12, 4)
        waits = [i for i, s in enumerate(steps) if s.after][:60]
        broken = [[*steps[:i], replace(steps[i], after=()), *steps[i + 1 :]] for i in waits]
        assert sum(bool(races(plan)) for plan in broken) > 40

    def test_tiles_that_fit(self) -> None:
        def tile_for(n: int, dtype: str, free: int) -> int | None:
            shape = streams(Shape(n, dtype=dtype), free)
            return None if shape is None else shape.tile

        gib = 1 << 30
        assert tile_for(98304, "int32", 16 * gib) == 4096
        assert tile_for(98304, "float32", 3 * gib) == 2048
        assert tile_for(98304, "int16", 3 * gib) == 4096
        assert tile_for(1000, "int32", gib) == 256
        assert tile_for(98304, "int32", 1 << 20) is None
        for free in (1 << 24, 1 << 26):
            n = KERNEL.largest_n("int32", free)
            assert tile_for(n, "int32", free) is not None and tile_for(n + 256, "int32", free) is None
        assert KERNEL.largest_n("int32", gib) == KERNEL.max_n


SIMULATED = """
from simulated_solver import *
from fwtui_kernels.streaming import out_of_core

costs.RESERVED_MEMORY = 0
object.__setattr__(out_of_core.KERNEL, "tiles", (8, 16))
for n, free, scale, low in ((34, 4000, 1, 1), (20, 4200, 500, 1), (20, 4200, 1, -2), (19, 4200, 0.5, 1), (20, 1 << 30, 1, 1)):
    engine.free_bytes = lambda: free
    matrix = random_matrix(n, n, 0.3, low < 0, scale)
    result = answer(of_object(matrix), engine=engine)
    assert (result.distances == by_scipy(matrix)).all(), (n, low)
    print(n, result.stats.dtype, result.stats.kernel, result.stats.tile)
try:
    free = 100
    answer(of_object(matrix), engine=engine)
except ValueError as refusal:
    print(refusal)
"""


def test_under_a_cap_of_memory_the_simulator_streams() -> None:
    *runs, refusal = in_simulator(SIMULATED).splitlines()
    assert runs[:4] == ["34 int16 out-of-core 8", "20 int32 out-of-core 8", "20 int32 out-of-core 8", "19 float32 out-of-core 8"]
    assert "out-of-core" not in runs[4]
    assert "20 vertices in int16 need" in refusal and "choose" in refusal
