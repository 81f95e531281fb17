"""Verification: correct results pass, and full and sampled checks catch every kind of wrong one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwtui.engine import verify
from fwtui.engine.verify import SOURCES, Verifier, VerifierFinding
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import NO_PATH, canonical, fletcher64
from fwtui.graphs.cycles import cycle_weight
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.graph_loader import read
from fwtui.stream.events import Verdict

HOWS = ("full", "sample")
KINDS: tuple[dict[str, Any], ...] = (
    *({"dtype": "int32"}, {"dtype": "int16", "density": 0.02}, {"dtype": "float32"}, {"dtype": "float32", "density": 0.02}),
    *({"dtype": "int32", "negative": 0.3}, {"dtype": "int32", "negative": 0.3, "density": 0.03}),
    *({"dtype": "float32", "real": True}, {"dtype": "float32", "real": True, "negative": 0.3, "density": 0.03}),
    *({"dtype": "int32", "low": -1, "high": 60}, {"dtype": "int32", "low": 0, "high": 1, "density": 0.05}),
)


def solved(graph: GraphInput) -> np.ndarray:
    """Return canonical distances by the three loops, in the graph's data type."""
    d = graph.matrix.copy()
    no_edge = d.dtype.type(graph.no_edge)
    for k in range(graph.n):
        with np.errstate(over="ignore"):
            np.minimum(d, np.minimum(d[:, k, None] + d[None, k, :], no_edge), out=d)
    return canonical(d, graph, graph.dtype)


def check(
    graph: GraphInput, distances: np.ndarray, how: str, verifier: Verifier | None = None, kernel: str = "naive", form: str = ""
) -> VerifierFinding:
    return (verifier or Verifier()).check(graph, "key", distances, how, 512, kernel, form)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("n", [1, 2, 60])
def test_right_distances_are_verified(kind: dict[str, Any], how: str, n: int) -> None:
    graph = generate(Experiment(n=n, **kind))
    distances = solved(graph)
    finding = check(graph, distances, how)
    assert (finding.verdict, finding.cycle) == ("verified", ())
    assert finding.checksum == fletcher64(distances)
    assert finding.cells == (n * n if how == "full" else min(n, SOURCES) * n)
    far = np.isinf(distances) if kind.get("real") else distances == NO_PATH
    assert finding.reachable == n * n - far.sum() - n + far.diagonal().sum()
    cells = f"all {n * n:,} cells equal SciPy's" if n > 1 else "its only cell agrees with SciPy's"
    assert finding.how == (cells if how == "full" else f"{min(n, SOURCES)} rows equal Dijkstra's")


@pytest.mark.parametrize("n", [1, 10])
def test_auto_is_full_up_to_the_limit(n: int) -> None:
    graph = generate(Experiment(n=n, dtype="int32"))
    for limit, word in ((n, "SciPy"), (n - 1, "Dijkstra")):
        assert word in Verifier().check(graph, 0, solved(graph), "auto", limit, "naive").how


def sampled_cell(graph: GraphInput, distances: np.ndarray) -> tuple[int, int]:
    """Return a cell with a path in a row that a sampled check compares."""
    spoilt = distances.copy()
    spoilt[~np.eye(graph.n, dtype=bool)] += 1
    row = int(check(graph, spoilt, "sample").how.split("(")[1].split(",")[0])
    column = next(j for j in range(graph.n) if j != row and 0 < distances[row, j] < 10**6)
    return row, column


@pytest.mark.parametrize("mutant", ["off by one", "unreachable"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "kind", [{"dtype": "int32"}, {"dtype": "float32", "real": True}, {"dtype": "int32", "negative": 0.2}], ids=str
)
def test_one_wrong_cell_is_caught_and_named(mutant: str, how: str, kind: dict[str, Any]) -> None:
    graph = generate(Experiment(n=40, **kind))
    right = solved(graph)
    at = sampled_cell(graph, right)
    wrong = right.copy()
    no_path = NO_PATH if wrong.dtype.kind == "i" else np.inf
    wrong[at] = wrong[at] + 1 if mutant == "off by one" else no_path
    finding = check(graph, wrong, how)
    got = "no path" if mutant == "unreachable" else f"{wrong[at].item():.9g}"
    assert finding.verdict == "wrong"
    assert finding.how == f"wrong at ({at[0]}, {at[1]}): {got}, expected {right[at].item():.9g}; 1 cell differs"


def test_a_stale_cell_is_caught() -> None:
    graph = generate(Experiment(n=40, dtype="int32"))
    right = solved(graph)
    stale = right.copy()
    at = next((i, j) for i, j in np.argwhere(right != graph.matrix).tolist() if graph.matrix[i, j] < graph.no_edge)
    stale[at] = graph.matrix[at]  # the cell before its last relaxation
    assert check(graph, stale, "full").verdict == "wrong"
    assert check(graph, np.where(graph.matrix >= graph.no_edge, NO_PATH, graph.matrix), "sample").verdict == "wrong"


@pytest.mark.parametrize("how", HOWS)
def test_an_unreachable_cell_made_finite_is_caught(how: str) -> None:
    graph = generate(Experiment(n=40, density=0.02, dtype="int32"))
    distances = solved(graph)
    distances[distances == NO_PATH] = 7
    finding = check(graph, distances, how)
    assert finding.verdict == "wrong" and "7, expected no path" in finding.how


@pytest.mark.parametrize("how", HOWS)
def test_nan_anywhere_is_caught(how: str) -> None:
    real = generate(Experiment(n=40, real=True))
    for at in ((0, 1), (17, 17), (39, 0)):
        distances = solved(real)
        distances[at] = np.nan
        finding = check(real, distances, how)
        assert finding.verdict == "wrong" and f"({at[0]}, {at[1]}): nan" in finding.how
    whole = generate(Experiment(n=40))
    raw = whole.matrix.copy()
    raw[5, 6] = np.nan
    finding = check(whole, canonical(raw, whole, "float32"), how)
    assert finding.verdict == "wrong"
    distances = solved(whole)
    distances[39, 38] = canonical(np.full((1, 1), np.nan, dtype=np.float32), whole, "float32")[0, 0]
    finding = check(whole, distances, how)
    assert finding.verdict == "wrong" and "(39, 38): NaN, a fraction or an overflow" in finding.how


@pytest.mark.parametrize("how", HOWS)
def test_a_diagonal_that_is_not_zero_is_caught(how: str) -> None:
    graph = generate(Experiment(n=40, dtype="int32"))
    for value in (3, -3):
        for vertex in range(40):
            distances = solved(graph)
            distances[vertex, vertex] = value
            finding = check(graph, distances, how)
            assert finding.verdict == "wrong" and f"wrong at ({vertex}, {vertex}): {value}, expected 0" in finding.how


def test_verification_off_claims_nothing_and_findings_fit_the_event() -> None:
    graph = generate(Experiment(n=9))
    finding = check(graph, solved(graph) + 1, "off")
    assert (finding.verdict, finding.how, finding.cells) == ("unverified", "verification is off", 0)
    graph = generate(Experiment(n=12, low=-8, dtype="int32"))
    finding = check(graph, solved(graph), "auto")
    assert Verdict(t=0, run=1, **finding._asdict()).cycle == finding.cycle


@pytest.mark.parametrize("how", ("full", "sample", "off"))
def test_a_negative_cycle_is_reported_with_its_vertices(how: str) -> None:
    graph = generate(Experiment(n=30, low=-8, high=10, dtype="int32"))
    finding = check(graph, solved(graph), how)
    assert finding.verdict == "negative cycle" and finding.reachable is None
    assert cycle_weight(graph.matrix, finding.cycle) < 0
    missed = check(graph, np.zeros((30, 30), dtype=np.int32), how)
    assert how == "off" or (missed.verdict == "wrong" and "the graph has a negative cycle" in missed.how)


def path_graph(tmp_path: Path, weight: int, dtype: str, closed: bool) -> GraphInput:
    """Return a path graph with an edge back to its start, whose distances overflow int16."""
    arcs = [(1, 2, weight), (2, 3, weight), (3, 4, weight)] + ([(4, 1, weight)] if closed else [])
    lines = "".join(f"a {u} {v} {w}\n" for u, v, w in arcs)
    (tmp_path / "path.gr").write_text(f"p sp 4 {len(arcs)}\n{lines}")
    return read(str(tmp_path / "path.gr"), dtype)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("dtype", "fits", "over"), [("int16", 5400, 6000), ("float32", 5_000_000, 6_000_000)])
def test_too_long_distances_are_out_of_range(tmp_path: Path, how: str, closed: bool, dtype: str, fits: int, over: int) -> None:
    graph = path_graph(tmp_path, fits, dtype, closed)
    assert check(graph, solved(graph), how).verdict == "verified"
    graph = path_graph(tmp_path, over + 1, dtype, closed)
    distances = solved(graph)
    finding = check(graph, distances, how)
    assert finding.verdict == "out of range"


def test_out_of_range_is_counted_beyond_the_sampled_rows() -> None:
    graph = generate(Experiment(n=300, density=0.004, high=3000, dtype="int16"))
    distances = solved(graph)
    expected = verify.scipy_distances(graph, None)
    assert [check(graph, distances, how).verdict for how in HOWS] == ["out of range"] * 2
    hidden = np.where(distances == NO_PATH, expected, distances)  # as if only unsampled rows had overflowed
    at = np.argwhere(expected != distances)
    sampled = set(np.sort(np.random.default_rng(16807).permutation(300)[:SOURCES]).tolist())
    outside = next((i, j) for i, j in at.tolist() if i not in sampled)
    hidden[outside] = NO_PATH
    finding = check(graph, hidden, "sample")
    assert finding.verdict == "out of range" and "pairs have no path, expected" in finding.how


def test_checksums_of_other_kernels_are_compared() -> None:
    graph = generate(Experiment(n=60, dtype="int32"))
    right, verifier = solved(graph), Verifier()
    assert check(graph, right, "sample", verifier, "naive").how == "16 rows equal Dijkstra's"
    assert check(graph, right, "sample", verifier, "naive").how == "16 rows equal Dijkstra's"
    assert check(graph, right, "sample", verifier, "blocked").how == "16 rows equal Dijkstra's; same checksum as naive"
    spoilt: np.ndarray | None = None
    for row in range(60):  # the first row that no sampled check looks at
        spoilt = right.copy()
        spoilt[row, (row + 1) % 60] += 1
        if check(graph, spoilt, "sample").verdict == "verified":
            break
    assert spoilt is not None
    finding = check(graph, spoilt, "sample", verifier, "third")
    assert finding.verdict == "unverified"
    assert finding.how == "16 rows equal Dijkstra's, but the checksum differs from that of naive, blocked"
    # one kernel's tiles and options are other code
    forms = ("tile 8", ""), ("tile 8", ""), ("tile 16", ", 1 other form of itself"), ("tile 32", ", 2 other forms of itself")
    verifier = Verifier()
    for kernel in ("naive", "blocked"):
        check(graph, right, "sample", verifier, kernel)
    for form, others in forms:
        told = check(graph, right, "sample", verifier, "tiled", form).how
        assert told == f"16 rows equal Dijkstra's; same checksum as naive, blocked{others}"
    assert check(graph, spoilt, "sample", verifier, "tiled", "tile 4").how.endswith("tiled tile 8, tiled tile 16, tiled tile 32")


def test_the_reference_is_made_once_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = verify.scipy_distances
    monkeypatch.setattr(verify, "scipy_distances", lambda graph, *more: made.append(graph.n) or original(graph, *more))
    verifier = Verifier()
    graphs = {n: generate(Experiment(n=n, dtype="int32")) for n in (5, 6, 7)}
    for n in (5, 6, 5, 6, 7, 6, 7, 5):
        assert verifier.check(graphs[n], n, solved(graphs[n]), "full", 512, "naive").verdict == "verified"
    assert made == [5, 6, 7, 5]
    as_float = generate(Experiment(n=5, dtype="float32"))
    assert verifier.check(as_float, 5, solved(as_float), "full", 512, "naive").verdict == "verified"
    assert made == [5, 6, 7, 5]
    changed = generate(Experiment(n=5, dtype="int32", high=90))
    assert verifier.check(changed, 5, solved(changed), "full", 512, "naive").verdict == "verified"
    assert made == [5, 6, 7, 5, 5]
    finding = verifier.check(changed, 5, solved(changed), "full", 512, "scipy")
    assert finding.how == "all 25 cells equal those of SciPy's Dijkstra", "nobody is his own judge"
    assert made == [5, 6, 7, 5, 5, 5]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("signed", [False, True])
def test_weights_off_the_grid_are_compared_within_units_in_the_last_place(tmp_path: Path, how: str, signed: bool) -> None:
    rng = np.random.default_rng(4)
    height = rng.random(50) * signed
    lines = [
        f"a {i + 1} {j + 1} {rng.random() + height[i] - height[j]:.9f}"
        for i in range(50)
        for j in range(50)
        if i != j and rng.random() < 0.1
    ]
    (tmp_path / "off.gr").write_text(f"p sp 50 {len(lines)}\n" + "\n".join(lines))
    graph = read(str(tmp_path / "off.gr"), "float32")
    right = solved(graph)
    finding = check(graph, right, how)
    assert finding.verdict == "verified" and "within 50 units in the last place" in finding.how
    at = sampled_cell(graph, right)
    for value in (right[at] * np.float32(1.001), np.inf, np.nan):
        wrong = right.copy()
        wrong[at] = value
        assert check(graph, wrong, how).verdict == "wrong"
