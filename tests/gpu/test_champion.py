"""The top rungs on a GPU: against SciPy on many small graphs, against Dijkstra and another kernel on a large one."""

from itertools import product
from typing import Any

import pytest
from small_runs import ran, wrong

from fwtui.experiment.experiment import Experiment, settle
from fwtui_kernels import registry

pytestmark = pytest.mark.gpu
TOP = ("register-tiled", "look-ahead", "resident")


@pytest.mark.parametrize(("dtype", "form"), [*product(("float32", "int32", "int16"), (1, 2)), ("float64", 1)])
def test_both_forms_equal_scipy_where_blocks_are_many(engine: Any, dtype: str, form: int) -> None:
    for tile in registry()["look-ahead"].tiles_for(False, dtype):
        e = settle(Experiment(kernel="look-ahead", n=1500, dtype=dtype, tile=tile, options={"form": form}, verify="full"))
        if registry()[e.kernel].lacks(e.shape(e.n), engine.target):
            pytest.skip(f"{dtype} needs a newer GPU")
        assert not wrong(engine, e)


@pytest.mark.parametrize("negative", [0.0, 0.2])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16", "float64"])
def test_a_large_graph_agrees_with_dijkstra_and_with_another_kernel(engine: Any, dtype: str, negative: float) -> None:
    if dtype == "int16" and negative:
        pytest.skip("int16 does not support negative weights")
    graph = {"n": 16384, "dtype": dtype, "negative": negative, "repeats": 1, "verify": "sample"}
    experiments = [settle(Experiment(kernel=kernel, **graph)) for kernel in ("katz-kider", *TOP[:2])]
    if registry()[TOP[0]].lacks(experiments[1].shape(16384), engine.target):
        pytest.skip(f"{dtype} needs a newer GPU")
    verdicts: list[Any] = [run.verdict for run in ran(engine, *experiments).runs.values()]
    assert [v.verdict for v in verdicts] == ["verified"] * 3
    assert len({v.checksum for v in verdicts}) == 1
    assert "katz-kider" in verdicts[1].how and "katz-kider" in verdicts[2].how
