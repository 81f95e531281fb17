"""Paths of `solve` on the CPU, and the memory that it needs."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from path_checks import check_paths
from pretending import Pretend
from test_solve import KINDS, least, random_arcs

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.solver import costs, engine_choice, kernel_choice, kernel_run, paths
from fwtui.solver.call import Call
from fwtui.solver.costs import check_room
from fwtui.solver.kernel_choice import choose_kernel
from fwtui.solver.solve import solve
from fwtui_kernels.plan import Shape
from fwtui_kernels.streaming import out_of_core


class TestPaths:
    def test_paths_do_not_loop_in_a_zero_weight_cycle(self) -> None:
        n = 40
        ring = np.full((n, n), np.inf)
        ring[np.arange(n), (np.arange(n) + 1) % n] = 0
        ring[np.arange(n), np.arange(n) - 1] = 0
        ring[0, 20] = 5
        for lift in (0, 3):  # the second one has negative weights
            shift = lift * (np.arange(n) % 5)
            matrix = ring + shift[:, None] - shift[None, :]
            result = solve(matrix, predecessors=True)
            assert result.predecessors is not None
            check_paths(matrix, result.distances, result.predecessors)

    def test_single_paths_from_distances_alone(self) -> None:
        for kind in KINDS:
            matrix = least(*random_arcs(kind, 11))
            result = solve(matrix)
            assert result.paths is not None
            before = np.array([result.paths.by_dijkstra(np.array([i]))[0] for i in range(len(matrix))])
            check_paths(matrix, result.distances, before, apart=1e-4)
            for i, j in np.argwhere(np.isfinite(result.distances)).tolist():
                assert len(result.path(i, j)) == (1 if i == j else len(result.path(i, before[i, j])) + 1)

    def test_dijkstra_finds_paths_that_rounding_hides(self, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
        pretend.limits(paths, ROUNDINGS=0)
        called = []
        mend = paths.Paths.by_dijkstra
        monkeypatch.setattr(paths.Paths, "by_dijkstra", lambda self, source: called.append(source) or mend(self, source))
        for lift in (0.0, 0.7):
            rng = np.random.default_rng(2)
            matrix = np.where(rng.random((60, 60)) < 0.1, rng.random((60, 60)), np.inf)
            matrix += lift * (np.sqrt(np.arange(60))[:, None] - np.sqrt(np.arange(60)))
            np.fill_diagonal(matrix, 0)
            result = solve(matrix, predecessors=True)
            reach = np.isfinite(result.distances)
            assert result.predecessors is not None and (result.predecessors[reach & ~np.eye(60, dtype=bool)] >= 0).mean() > 0.9
        assert called

    @pytest.mark.parametrize(
        "kind", ["decades", "arcs", *(pytest.param(k, marks=pytest.mark.slow) for k in ("third", "twelfth", "whole"))]
    )
    def test_short_distances_beside_long_ones(self, kind: str) -> None:
        """The weights cover ten decades and more."""
        for seed in range(8):
            rng = np.random.default_rng(seed)
            n = 17
            chance = rng.random((n, n))
            weights = {"third": chance**3, "twelfth": chance**12, "whole": np.rint(2.0**40 * chance**12)}.get(
                kind, 10 ** (10 * chance)
            )
            if kind != "third":
                weights[rng.random((n, n)) < 0.7] = np.inf
            np.fill_diagonal(weights, 0)
            given: Any = np.ma.masked_invalid(weights)
            if kind == "arcs":
                sources, targets = np.nonzero(np.isfinite(weights) & ~np.eye(n, dtype=bool))
                kept = weights[sources, targets]
                # each a second time, longer by less than rounding tells apart
                arcs = Arcs(*(np.concatenate(two) for two in ((sources, sources), (targets, targets), (kept, kept * 1.0000005))))
                given = Adjacency(n, arcs=arcs)
            result = solve(given, predecessors=True, device="cpu")
            assert result.stats.exact == (kind == "whole"), "float64 holds these whole weights"
            assert result.predecessors is not None and result.paths is not None
            rows = np.array([result.paths.by_dijkstra(np.array([i]))[0] for i in range(n)])
            again = result.paths.by_dijkstra(np.arange(n))
            for before in (result.predecessors, rows, again, result.paths.compiled_search()):
                check_paths(weights, result.distances, before, near=1e-5, apart=1e-43)


class TestRoom:
    def test_a_refusal_names_needed_and_free_memory_and_the_size_that_fits(self, pretend: Pretend) -> None:
        pretend.free_memory(8 << 30)
        fits = r"only 8.00 GiB is free; choose a graph of up to 45,568 vertices or the rows of up to 20,803 of them"
        with pytest.raises(Refused, match=f"100,000 vertices in int32 need 37.3 GiB, but {fits}"):
            check_room(100_000, "int32", False)
        with pytest.raises(Refused, match=r"distances and predecessors .* or distances without predecessors"):
            check_room(40_000, "int32", True)
        check_room(40_000, "int32", False)
        check_room(45_568, "int32", False)

    def test_distances_that_need_float64_are_counted(self, pretend: Pretend) -> None:
        n = 256
        cycle = np.full((n, n), np.inf)
        cycle[np.arange(n), (np.arange(n) + 1) % n] = 100_000
        whole = 8 * n * n
        for predecessors, needed in ((False, whole), (True, whole + 4 * n * n)):
            pretend.free_memory(costs.RESERVED_MEMORY + needed)
            assert solve(cycle, predecessors=predecessors, device="cpu").distances.dtype == np.float64
            pretend.free_memory(costs.RESERVED_MEMORY + needed - 1)
            with pytest.raises(
                Refused, match=r"that reach 2\^24 need 64 bits, .* more, but only .* is free.*dtype float32, which rounds"
            ):
                solve(cycle, predecessors=predecessors, device="cpu")
            assert solve(cycle, dtype="float32", predecessors=predecessors, device="cpu").distances[0, 255] == 25_500_000
        assert solve(cycle / 100, device="cpu").distances.dtype == np.float32

    @pytest.mark.parametrize(
        ("n", "free", "weight", "said"),
        [
            (300, costs.RESERVED_MEMORY + 12 * 384**2 - 1, 2.0**24, "300 vertices in int32 need 1.69 MiB"),  # float64 for all
            (60_000, 1 << 30, 1.0, "60,000 vertices in int16 need"),
        ],
    )
    def test_insufficient_memory_is_refused_before_the_computation(
        self, n: int, free: int, weight: float, said: str, monkeypatch: pytest.MonkeyPatch, pretend: Pretend
    ) -> None:
        pretend.free_memory(free)
        monkeypatch.setattr(kernel_run, "ready_program", lambda *_: pytest.fail("it was computed first"))
        with pytest.raises(Refused, match=said):
            solve(Adjacency(n, arcs=Arcs(np.array([0]), np.array([1]), np.array([weight]))), device="cpu")

    def test_a_kept_result_needs_memory_for_a_matrix_on_the_host(self, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
        pretend.free_memory(1 << 30)
        graph = Adjacency(60_000, arcs=Arcs(np.zeros(1, int), np.ones(1, int), np.ones(1)))
        for to_host in (True, False):  # the second time the distances stay on the device, but the host has the kernel's matrix
            with pytest.raises(Refused, match="60,000 vertices in int16 need"):
                choose_kernel(graph, graph.facts, Call(keep_on_device=True), "int16", engine_choice.CPU, to_host)
            monkeypatch.setattr(kernel_choice, "suited", lambda *_: (out_of_core.KERNEL, Shape(60_000, 512, "int16")))

    def test_exhausted_memory_of_a_gpu_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for error, kind in (("CUDA_ERROR_OUT_OF_MEMORY: x", Refused), ("CUDA_ERROR_LAUNCH_FAILED: x", RuntimeError)):
            monkeypatch.setattr(kernel_run, "ready_program", Mock(side_effect=RuntimeError(error)))
            with pytest.raises(kind, match=r"^the GPU's memory is exhausted; end|LAUNCH"):
                solve(np.ones((9, 9)), kernel="serial")
