"""The NetworkX backend: NetworkX's own tests, and comparisons with NetworkX on random graphs."""

import inspect
import math
import os
import random
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from processes import ROOT

from fwtui.solver import networkx_backend as backend
from fwtui.solver.networkx_info import FUNCTIONS, info
from fwtui.solver.solve import solve

WEIGHTS = {
    "whole": lambda rng: rng.randrange(0, 9),
    "real": lambda rng: rng.random() * 10,
    "quarters": lambda rng: rng.randrange(0, 99) / 4,
    "both types": lambda rng: rng.choice([1, 2.5, 3]),
    "negative": lambda rng: rng.randrange(-1, 12),
    "negative real": lambda rng: rng.random() * 10 - 0.3,
    "some missing": lambda rng: rng.choice([None, 1, 2, 3]),
    "beyond float32": lambda rng: rng.randrange(2**24, 2**40),
}


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return environment variables under which NetworkX finds the entry points of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    there = tmp_path / f"fwtui-{project['version']}.dist-info"
    there.mkdir()
    (there / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fwtui\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, points in groups for line in (f"[{group}]", *(f"{name} = {at}" for name, at in points.items()))]
    (there / "entry_points.txt").write_text("\n".join(lines))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NETWORKX_", "PYTEST"))}
    return {**clean, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}


@pytest.mark.parametrize(
    "which",
    [
        ["networkx.algorithms.shortest_paths"],
        pytest.param(["networkx"], marks=pytest.mark.slow),
    ],
    ids=["a part", "all"],
)
def test_networkx_passes_its_own_tests_with_it(which: list[str], installed: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", "--pyargs", *which],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **installed,
            "NETWORKX_TEST_BACKEND": "fwtui",
            "NETWORKX_FALLBACK_TO_NX": "True",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_networkx_finds_and_chooses_it(installed: dict[str, str]) -> None:
    code = """
import sys
from functools import wraps
import networkx as nx
assert not {"numpy", "scipy", "numba"} & set(sys.modules), "the information about it is light"
calls = []
graph = nx.path_graph(200)
nx.config.backend_priority = ["fwtui"]
nx.config.warnings_to_ignore.add("cache")
from fwtui.solver import networkx_backend
original = networkx_backend.diameter
networkx_backend.diameter = wraps(original)(lambda *given: calls.append(type(given[0])) or original(*given))
assert nx.diameter(graph) == 199 and calls == [networkx_backend.NetworkxGraph]
assert dict(nx.shortest_path_length(nx.path_graph(3), backend="fwtui"))[0] == {0: 0, 1: 1, 2: 2}
assert nx.shortest_path_length(graph, 0, 9) == 9, "single nodes are left to NetworkX"
assert nx.diameter(graph, usebounds=True) == 199 and len(calls) == 1, "left to NetworkX"
assert nx.diameter(nx.path_graph(9)) == 8 and len(calls) == 1, "too small to be worth it"
assert nx.diameter(nx.path_graph(9), backend="fwtui") == 8 and len(calls) == 2
assert networkx_backend.should_run("all_pairs_shortest_path", (graph,), {}) is not True
graph.add_edge(0, 199)
assert nx.diameter(graph) == 100 and len(calls) == 3, "a changed graph is converted again"
assert nx.diameter(graph, weight=lambda u, v, edge: 2) == 200 and len(calls) == 3
print(nx.johnson.__doc__)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=installed)
    assert done.returncode == 0, done.stderr
    assert str(info()["short_summary"]) in done.stdout


def test_the_readmes_examples_give_their_results(installed: dict[str, str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", Path(backend.__file__).with_name("README.md").read_text(), re.DOTALL)
    lines = "".join(block for block in blocks if not re.search("comm=|molecules", block)).splitlines()
    told = [line.split("  # ") for line in lines if re.search(r"  # [\[{\d]", line)]
    assert len(told) == 3
    code = [line if line.split("  # ") not in told else f"print({line.split('  # ')[0]})" for line in lines]
    done = subprocess.run([sys.executable, "-P", "-c", "\n".join(code)], capture_output=True, text=True, env=installed)
    assert done.returncode == 0, done.stderr
    numbers = re.findall(r"\d+|inf", " ".join(text.partition(" in ")[0] for _, text in told))
    assert re.findall(r"\d+|inf", done.stdout.replace(".", "")) == numbers


def test_the_backend_information_names_its_functions() -> None:
    own = {name for name, made in vars(backend).items() if inspect.isfunction(made) and made.__module__ == backend.__name__}
    assert {name for name in own if hasattr(nx, name)} == set(FUNCTIONS)
    for name in FUNCTIONS:
        assert str(inspect.signature(getattr(backend, name))) == str(inspect.signature(inspect.unwrap(getattr(nx, name))))


def graphs(weights: str) -> Iterator[Any]:
    for seed in range(4):
        rng = random.Random(f"{weights} {seed}")
        graph = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)[seed % 4]()
        names = [(v, "x") if v % 3 else f"v{v}" for v in range(rng.randrange(1, 14))]
        rng.shuffle(names)
        graph.add_nodes_from(names)
        for _ in range(rng.choice([1, 2, 4]) * len(names)):
            weight = WEIGHTS[weights](rng)
            graph.add_edge(rng.choice(names), rng.choice(names), **({} if weight is None else {"weight": weight}))
        yield graph


def outcome(function: Any, graph: Any, **given: Any) -> Any:
    """Return the result, with iterators exhausted, or the error."""
    try:
        found = function(graph, **given)
        return list(found) if isinstance(found, Iterator) else found
    except (nx.NetworkXException, ValueError) as error:
        return type(error), str(error)


def alike(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        same = found.keys() == expected.keys()
        return same and all(alike(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.allclose(found, expected, rtol=1e-12)
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    return found == expected


# of several shortest paths any is right: NetworkX's own tests, above, say what else has to hold of them
PATHS = {
    *(f"all_pairs_{name}" for name in ("bellman_ford_path", "dijkstra", "dijkstra_path", "shortest_path")),
    *("floyd_warshall_predecessor_and_distance", "johnson", "shortest_path"),
}
QUICK = ("whole", "negative real", "some missing")


@pytest.mark.parametrize("weights", [pytest.param(w, marks=() if w in QUICK else pytest.mark.slow) for w in WEIGHTS])
def test_answers_are_those_of_networkx(weights: str) -> None:
    compared = 0
    for graph in graphs(weights):
        for name in {*FUNCTIONS} - PATHS:
            function, own = getattr(nx, name), getattr(backend, name)
            parameters = inspect.signature(own).parameters
            ways: list[dict[str, str]] = [{}, *([{"weight": "weight"}] if "weight" in parameters else [])]
            if name.startswith("shortest"):
                ways += [{"weight": "weight", "method": method} for method in ("bellman-ford", "floyd-warshall")]
            for given in ways:
                if backend.can_run(name, (graph,), given) is not True:
                    continue
                try:
                    found = outcome(own, backend.convert_from_nx(graph, edge_attrs={"weight": 1}), **given)
                except NotImplementedError:
                    continue
                compared += 1
                expected = outcome(inspect.unwrap(function), graph, **given)
                assert alike(found, expected), (name, given)
                if weights == "whole" and isinstance(expected, list | dict) and "floyd" not in name:
                    assert str(types(found)) == str(types(expected)), (name, given)
    assert compared > 40


def types(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {str(key): types(value) for key, value in sorted(answer.items(), key=str)}
    return [types(part) for part in answer] if isinstance(answer, list | tuple) else type(answer)


def test_the_nearest_come_first_and_whole_numbers_stay_whole() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([("c", "a", 5), ("a", "b", 2), ("c", "d", 1)])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    lengths = dict(backend.all_pairs_dijkstra_path_length(converted))
    assert str(lengths["c"]) == "{'c': 0, 'd': 1, 'a': 5, 'b': 7}" and list(lengths) == list(graph)
    assert str(backend.floyd_warshall(converted)["c"]) == "{'c': 0, 'a': 5, 'b': 7, 'd': 1}"


@pytest.mark.parametrize("weight", [float("inf"), float("nan"), None, "far", 2**60, 1j, np.float32(0.1)])
def test_weights_that_it_leaves_to_networkx(weight: object) -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=weight)
    with pytest.raises(NotImplementedError):
        backend.convert_from_nx(graph, edge_attrs={"weight": 1})


def test_a_generator_raises_where_networkx_does() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 3), (2, 3, -4), (3, 2, 1)])
    for function in (backend.all_pairs_bellman_ford_path_length, backend.all_pairs_bellman_ford_path):
        found = function(backend.convert_from_nx(graph))
        assert next(found)[0] == 0 and next(found)[0] == 1
        with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle detected"):
            next(found)
    with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle detected"):
        backend.johnson(backend.convert_from_nx(graph))


def test_a_graph_goes_back_whole_and_one_that_does_not_fit_is_left_to_networkx() -> None:
    graph = nx.MultiDiGraph(name="roads")
    graph.add_node("a", colour="red")
    graph.add_edge("a", "b", key="k", weight=2, lanes=3)
    with warnings.catch_warnings(action="error"):
        back = backend.convert_to_nx(backend.convert_from_nx(graph, edge_attrs={"weight": 1}))
    assert nx.utils.graphs_equal(back, graph)
    assert backend.convert_to_nx([1, 2]) == [1, 2]

    class Vast(nx.Graph):
        def __len__(self) -> int:
            return 10**8

    reason = backend.can_run("diameter", (Vast(),), {})
    assert isinstance(reason, str) and "100,000,000 vertices" in reason


def test_an_edge_with_two_weights_is_two_arcs_and_left_to_networkx() -> None:
    """The graph is an undirected view of a directed one."""
    directed = nx.DiGraph([(0, 1, {"weight": 1}), (1, 0, {"weight": 5}), (1, 2, {"weight": 2})])
    view = directed.to_undirected(as_view=True)
    lengths = dict(nx.all_pairs_dijkstra_path_length(view))
    assert solve(view).distances.tolist() == [[lengths[u][v] for v in view] for u in view]
    for algorithm in (nx.floyd_warshall_numpy, nx.diameter):
        with pytest.raises(NotImplementedError):
            algorithm(view, weight="weight", backend="fwtui")
