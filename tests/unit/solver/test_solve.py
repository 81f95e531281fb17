"""`solve` against SciPy: 500 random graphs, its conventions, its types, its refusals (others: tests/attack/test_arrays.py)."""

import runpy
import sys
import warnings
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from path_checks import by_scipy, check_paths, sparse
from processes import DATA
from scipy.sparse.csgraph import NegativeCycleError, shortest_path

import fwtui
from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.solver.solve import solve

KINDS = ("directed", "undirected", "negative", "disconnected", "zeros", "parallel", "loops", "real")


def random_arcs(kind: str, seed: int) -> tuple[int, Arcs]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    m = int(n * n * rng.choice([0.05, 0.2, 0.6]) if kind != "disconnected" else n * 0.7)
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    w = rng.integers(0 if kind == "zeros" else 1, 2 if kind == "zeros" else 40, m).astype(float)
    if kind == "real":
        w = rng.random(m) * 10
    if kind == "negative":
        lift = rng.integers(0, 30, n)
        w += lift[u] - lift[v]  # a cycle's sum is what it was
    if kind != "loops":
        u, v, w = u[u != v], v[u != v], w[u != v]
    if kind == "undirected":
        u, v, w = np.concatenate([u, v]), np.concatenate([v, u]), np.concatenate([w, w])
    if kind == "parallel":
        u, v, w = np.concatenate([u, u]), np.concatenate([v, v]), np.concatenate([w, w[::-1]])
    return n, Arcs(u.astype(np.int64), v.astype(np.int64), w)


def least(n: int, arcs: Arcs) -> np.ndarray:
    matrix = np.full((n, n), np.inf)
    np.minimum.at(matrix, (arcs.sources, arcs.targets), arcs.weights)
    return matrix


class TestAgainstSciPy:
    @pytest.mark.parametrize("kind", KINDS)
    def test_random_graphs(self, kind: str) -> None:
        for seed in range(500 // len(KINDS) + 1):
            n, arcs = random_arcs(kind, seed)
            matrix = least(n, arcs)
            expected = by_scipy(matrix)
            result = solve(Adjacency(n, arcs=arcs), predecessors=seed % 3 == 0)
            if kind == "real":
                assert np.allclose(result.distances, expected, rtol=1e-14, atol=0)
                assert result.stats.exact == (not result.stats.edges)
            else:
                assert (result.distances == expected).all() and result.stats.exact
            assert result.distances.dtype == (np.float32 if result.stats.exact else np.float64)
            assert result.stats.kernel == "scipy" or "numba" in sys.modules, "what is there already may compute"
            if result.predecessors is not None:
                check_paths(matrix, result.distances, result.predecessors, apart=1e-13 * (kind == "real"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_dense_and_sparse_input_and_the_tiled_kernel(self, kind: str) -> None:
        n, weights = 130, np.abs(random_arcs(kind, 7)[1].weights)  # more than one tile, and padding
        rng = np.random.default_rng(1)
        matrix = np.where(rng.random((n, n)) < 0.3, rng.choice(weights, (n, n)), np.inf)
        if kind == "negative":
            matrix += np.subtract.outer(np.arange(n) % 7, np.arange(n) % 7)
        np.fill_diagonal(matrix, 0)
        expected = by_scipy(matrix)
        for given in (matrix, np.ma.masked_invalid(matrix), sparse(matrix)):
            got = solve(given, kernel="tiled-cpu", predecessors=True)
            assert got.stats.kernel == "tiled-cpu" and got.stats.tile
            assert np.allclose(got.distances, expected, rtol=1e-5 if kind == "real" else 0)
            assert got.predecessors is not None
            check_paths(matrix, got.distances, got.predecessors, apart=1e-13 * (kind == "real"))

    def test_a_zero_weight_cycle_is_not_negative_in_spite_of_rounding(self) -> None:
        third = np.array([[0, 0.1, np.inf], [np.inf, 0, 0.2], [-0.3, np.inf, 0.0]])
        result = solve(third, predecessors=True)
        assert (result.distances.diagonal() == 0).all() and np.allclose(result.distances[0], [0, 0.1, 0.3])
        assert result.path(0, 2) == [0, 1, 2]
        with pytest.raises(NegativeCycleError):
            solve(np.where(third == -0.3, -0.3001, third))

    @pytest.mark.parametrize("kernel", ["auto", "serial", "tiled-cpu"])
    def test_a_negative_loop_is_a_negative_cycle(self, kernel: str) -> None:
        looped = np.array([[0, 1, np.inf], [np.inf, -1, 2], [np.inf, np.inf, 0.0]])
        with pytest.raises(NegativeCycleError, match="1 -> 1"):
            solve(looped, kernel=kernel)

    def test_networkx(self) -> None:
        graph = networkx.MultiDiGraph()
        graph.add_weighted_edges_from([("a", "b", 4), ("a", "b", 2), ("b", "c", 0), ("c", "c", 9)])
        graph.add_edge("c", "d")
        result = fwtui.solve(graph, predecessors=True)
        expected = networkx.floyd_warshall_numpy(graph)
        assert (result.distances == expected).all() and result.vertices.labels == ["a", "b", "c", "d"]
        assert result.path(0, 3) == [0, 1, 2, 3] and result.path(3, 0) == []


class TestTypes:
    def test_the_narrowest_type_that_provably_holds_all_distances_is_chosen(self) -> None:
        ring = np.full((5, 5), np.inf)
        ring[np.arange(5), (np.arange(5) + 1) % 5] = 4000
        by_edges = solve(np.where(np.isfinite(ring), ring / 4, np.inf)).stats
        assert (by_edges.dtype, by_edges.proof) == ("int16", "proved by (n-1) x greatest weight")
        ring[0, 1] = 5000
        assert solve(ring).stats.dtype == "int32"  # 17,000 out and 16,000 home
        ring[0, 1:], ring[1:, 0] = 5000, 5000
        by_searches = solve(ring).stats
        assert (by_searches.dtype, by_searches.proof) == ("int16", "proved by two searches from vertex 0")
        assert solve(ring / 3).stats.dtype == "float64" and solve(ring / 256).stats.dtype == "float32"
        assert solve(ring, dtype="int32").stats.dtype == "int32"

    def test_unproved_distances_are_checked_and_computed_again(self) -> None:
        chain = np.full((6, 6), np.inf)
        chain[np.arange(5), np.arange(1, 6)] = 3300  # 16,500 to the end, and no way back
        apart = np.full((7, 7), np.inf)
        apart[1:, 1:] = chain  # vertex 0 sees none of it
        result = solve(apart)
        assert (result.stats.dtype, result.distances[1, 6]) == ("int32", 16500)
        with pytest.raises(Refused, match="some distances overflow int16"):
            solve(apart, dtype="int16")
        apart[1:, 1:] = chain - 100  # 16,000 at most, but no search from vertex 0 can tell
        assert (solve(apart).stats.dtype, solve(apart).stats.proof) == ("int16", "checked afterwards")

    def test_large_distances_keep_their_digits(self) -> None:
        chain = np.full((4, 4), np.inf)
        chain[np.arange(3), np.arange(1, 4)] = 2**24 + 1
        result = solve(chain)
        assert result.stats.dtype == "int32" and result.distances.dtype == np.float64
        assert result.distances[0, 3] == 3 * (2**24 + 1)
        wide = solve(chain * 100)
        assert wide.stats.dtype == "float64" and wide.stats.exact and wide.distances[0, 3] == 300 * (2**24 + 1)
        rounded = solve(chain * 100, dtype="float32")
        assert rounded.distances.dtype == np.float32 and not rounded.stats.exact
        assert rounded.stats.proof == "rounded: sums of these weights need more digits than float32 has"
        quarters = solve(chain / 256)  # float32 is tried first, and rounds
        assert (quarters.stats.dtype, quarters.stats.exact) == ("float64", True)
        assert quarters.distances[0, 3] == 3 * (2**24 + 1) / 256
        on_the_grid = solve(np.array([[0, 0.25, np.inf], [np.inf, 0, 0.5], [7.75, np.inf, 0]])).stats
        assert on_the_grid.exact and on_the_grid.dtype == "float32"

    def test_types_that_do_not_fit(self) -> None:
        cases = ((-1.0, "int16", "int16 does not support negative weights"), (1e308, None, "leave no room for sums"))
        for weight, dtype, words in cases:
            with pytest.raises(Refused, match=words):
                solve(np.array([[0, weight], [3, 0]]), dtype=dtype)


class TestInput:
    def test_a_zero_has_to_mean_something_and_sparse_doubles_add_up(self) -> None:
        zeros = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 0.0]])
        with pytest.raises(Refused, match="zeros off the diagonal may mean"):
            solve(zeros)
        assert solve(np.ma.array(zeros)).distances[0, 1] == 0
        assert solve(scipy.sparse.csr_array(zeros)).distances[0, 1] == 2
        zeros[1, 2] = np.nan
        assert solve(zeros).distances[0, 1] == 0
        with pytest.raises(Refused, match="zeros off"):
            solve(np.array([[0, 0], [1, 0]]))
        graph = scipy.sparse.coo_array(([2.0, 3.0, 0.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
        assert (solve(graph).distances == shortest_path(graph.tocsr())).all()
        assert solve(graph).distances[0, 2] == 5

    @pytest.mark.parametrize(
        ("graph", "words"),
        [
            (np.zeros((2, 3)), "shape .2, 3. is not a graph"),
            (np.zeros(4), "shape .4,. is not a graph"),
            (np.array([["a"]]), "are not supported"),
            (np.ones((2, 2), dtype=complex), "are not supported"),
            (np.ones((2, 2), dtype=bool), "True and False"),
            (np.array([[0, -np.inf], [1, 0]]), "-inf is not a weight"),
            (scipy.sparse.csr_array(np.ones((2, 3))), "not a graph"),
            (scipy.sparse.csr_array(np.ones((2, 2)) * 1j), "are not supported"),
        ],
    )
    def test_other_objects_are_not_graphs(self, graph: object, words: str) -> None:
        with pytest.raises(Refused, match=words):
            solve(graph)

    @pytest.mark.parametrize(
        ("form", "name", "values"),
        [
            ("csr", "indptr", [0, 1 << 30, 2, 3]),
            ("csc", "indptr", [0, 2, 1, 3]),
            ("csr", "indptr", [0, 3]),
            ("csr", "indices", [0, 1, 7]),
            ("coo", "row", [0, 1, -9]),
        ],
    )
    def test_a_sparse_matrix_beyond_whose_arrays_scipy_would_read(self, form: str, name: str, values: list[int]) -> None:
        graph = scipy.sparse.eye_array(3, format=form)
        setattr(graph, name, np.array(values, dtype=np.int32))
        for solved in (solve, fwtui.shortest_path) if form != "coo" else (solve,):
            with pytest.raises(Refused, match="has indices outside its shape: its arrays are damaged; build it again"):
                solved(graph)

    def test_small_graphs_and_other_mistakes(self) -> None:
        with pytest.raises(TypeError, match="str is neither"):
            solve("graph.gr")
        with pytest.raises(Refused, match="there is no kernel 'fast'"):
            solve(np.ones((1, 1)), kernel="fast")
        with pytest.raises(IndexError, match="0 to 1"):
            solve(np.array([[0, 1], [1, 0]])).path(0, 2)
        none = solve(np.zeros((0, 0)), predecessors=True)
        assert none.distances.shape == (0, 0) and none.predecessors is not None and none.predecessors.shape == (0, 0)
        one = solve(np.zeros((1, 1)), predecessors=True)
        assert one.distances.tolist() == [[0]] and one.predecessors is not None and one.predecessors.tolist() == [[-9999]]
        assert one.path(0, 0) == [0]

    @pytest.mark.parametrize("bits", [np.array([0x7FF00000000007A2], np.uint64), np.array([0x7F8007A2], np.uint32)])
    def test_a_signalling_nan_is_no_edge(self, bits: np.ndarray) -> None:
        """R writes NA as a signalling NaN."""
        missing = bits.view(f"f{bits.itemsize}")
        matrix = least(*random_arcs("directed", 5))
        given = np.where(np.isfinite(matrix), matrix.astype(missing.dtype), missing)
        np.fill_diagonal(given, missing[0])
        with warnings.catch_warnings(action="error"):
            assert (solve(given).distances == by_scipy(matrix)).all()
        given[0, -1] = -np.inf
        with pytest.raises(Refused, match="-inf is not a weight"):
            solve(given)

    @pytest.mark.parametrize("given", ["float16", "float32", "float64", ">f4"])
    @pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
    def test_a_matrix_of_any_width_is_solved_and_not_modified(self, given: str, dtype: str) -> None:
        """The sentinel of the kernel's data type may not be exact in that of the matrix."""
        for seed in range(9):
            matrix = least(*random_arcs("negative" if seed % 2 and dtype != "int16" else "directed", seed)).astype(given)
            np.fill_diagonal(matrix, 0)
            before = matrix.copy()
            found = solve(matrix, dtype=dtype)
            assert found.stats.dtype == dtype and (found.distances == by_scipy(matrix.astype(float))).all()
            assert (matrix == before).all()


def test_odd_options_are_taken_or_refused_in_one_sentence() -> None:
    pair = [[0, 1], [1, 0]]
    for dtype, name in ((np.dtype("int32"), "int32"), (np.int16, "int16"), ("float32", "float32")):
        assert solve(pair, dtype=dtype).stats.dtype == name
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"kernel": ["serial"]}, r"there is no kernel \"\['serial'\]\""),
        ({"dtype": np.dtype("int64")}, "dtype 'int64' is not supported"),
        ({"comm": 5}, "comm is '5', not a communicator; pass one such as mpi4py.MPI.COMM_WORLD"),
        ({"dtype": np.array([1, 2])}, r"dtype '\[1 2\]' is not supported"),
        ({"keep": np.array([1, 2])}, r"keep is '\[1 2\]'"),
        ({"weight": np.array([1, 2])}, r"weight is '\[1 2\]', not a name"),
    ]
    for options, words in wrong:
        with pytest.raises(Refused, match=words):
            solve(pair, **options)


def test_so_many_vertices_are_refused_before_anything_is_made_for_each() -> None:
    with pytest.raises(Refused, match=r"2,147,483,647 vertices need 128 GiB, but only .* is free; pass at most"):
        solve(scipy.sparse.coo_array((2**31 - 1, 2**31 - 1)), sources=[1])


def test_a_users_script_runs() -> None:
    runpy.run_path(str(DATA / "users_script.py"))
