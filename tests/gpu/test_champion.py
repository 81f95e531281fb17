"""The top rungs on a GPU: against SciPy on many small graphs, against Dijkstra and another kernel on a large one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fwtui.experiment.experiment import Experiment, settle
from fwtui_kernels import registry

pytestmark = pytest.mark.gpu
TOP = ("register-tiled", "look-ahead", "resident")
CASES = 200


@pytest.fixture(scope="module")
def run(engine: Any):
    """Runs an experiment and gives its verdict; one runner, so that kernels on the same graph are compared."""
    from fwtui.measure.runner import Runner
    from fwtui.stream import events

    told: list[events.Event] = []
    runner = Runner(told.append, lambda: 0.0)

    def verdict(experiment: Experiment) -> events.Verdict:
        told.clear()
        runner.run(1, experiment, engine, lambda: None)
        found = [e for e in told if isinstance(e, events.Verdict)]
        assert found, told
        return found[0]

    return verdict


def random_case(seed: int) -> Experiment:
    """A random kernel, size, tile, type, sign, density, launch mode and options."""
    random = Random(seed)
    kernel = registry()[random.choice(TOP)]
    dtype = random.choice(kernel.dtypes)
    n = random.choice((random.randint(1, 130), random.randint(131, 700)))
    # two signs of weights for the types that have them; int16 keeps paths short
    negative = random.choice((0.0, 0.3)) if dtype != "int16" and n > 2 else 0.0
    return settle(
        Experiment(
            kernel=kernel.id,
            n=n,
            dtype=dtype,
            tile=random.choice(kernel.tiles),
            options={o.name: random.choice(o.values[:2]) for o in kernel.options},
            launch=random.choice(kernel.launch_modes),
            density=random.choice((0.02, 0.3, 1.0)),
            low=random.choice((0, 1)),
            negative=negative,
            real=dtype == "float32" and random.random() < 0.3,
            seed=seed,
            repeats=1,
            verify="full",
        )
    )


@pytest.mark.parametrize("first", range(0, CASES, 20))
def test_random_graphs_equal_scipy(run: Any, engine: Any, first: int) -> None:
    cases = [random_case(seed) for seed in range(first, first + 20)]
    possible = [e for e in cases if registry()[e.kernel].lacks(e.shape(e.n), engine.target) is None]
    assert possible
    wrong = [(e, v) for e in possible if (v := run(e)).verdict != "verified"]
    assert not wrong


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16"])
def test_both_forms_equal_scipy_where_blocks_are_many(run: Any, engine: Any, dtype: str, form: int) -> None:
    for tile in (64, 128):
        e = settle(
            Experiment(kernel="look-ahead", n=1500, dtype=dtype, tile=tile, options={"form": form}, repeats=2, verify="full")
        )
        if registry()[e.kernel].lacks(e.shape(e.n), engine.target):
            pytest.skip(f"{dtype} needs a newer GPU")
        assert run(e).verdict == "verified"


@pytest.mark.parametrize("negative", [0.0, 0.2])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16"])
def test_a_large_graph_agrees_with_dijkstra_and_with_another_kernel(run: Any, engine: Any, dtype: str, negative: float) -> None:
    if dtype == "int16" and negative:
        pytest.skip("int16 takes no negative weights")
    graph = {"n": 16384, "dtype": dtype, "negative": negative, "repeats": 1, "verify": "sample"}
    experiments = [settle(Experiment(kernel=kernel, **graph)) for kernel in ("katz-kider", *TOP[:2])]
    if registry()[TOP[0]].lacks(experiments[1].shape(16384), engine.target):
        pytest.skip(f"{dtype} needs a newer GPU")
    verdicts = [run(e) for e in experiments]
    assert [v.verdict for v in verdicts] == ["verified"] * 3
    assert len({v.checksum for v in verdicts}) == 1
    assert "katz-kider" in verdicts[1].how and "katz-kider" in verdicts[2].how
