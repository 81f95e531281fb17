"""`solve` without numba: it launches the same kernels, and falls back to numba if one is missing."""

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

UNIT = Path(__file__).resolve().parents[1]

# solves with a cuda.core that has no GPU, and tells every kernel that it launches and with which words
SOLVING = """
import json, sys
import fake_cuda_core
fake_cuda_core.install()
fake_cuda_core.all_kernels_kept()
import numpy as np
from scipy.sparse import csr_array
from fwtui.graphs.library_objects import lazy_of_object, of_object
from fwtui.solver.call import Call
from fwtui.solver.driver import answer

n = 200
dense = np.where(np.random.default_rng(1).random((n, n)) < 0.5, 3.0, np.inf)
sparse = csr_array(np.where(dense < np.inf, dense, 0))
forms = dense, np.asfortranarray(dense.astype(np.float32)), sparse, of_object(sparse)
for dtype, greatest, fraction in (("int16", 9, 0), ("int16", 100, 0), ("int32", 9, 0), ("float32", 9, 1), ("float32", 9, 2)):
    fake_cuda_core.survey[1], fake_cuda_core.survey[3] = greatest, fraction
    for form in forms:
        result = answer(lazy_of_object(form) if form is not forms[-1] else form, Call(dtype=dtype, device="0", predecessors=True))
        assert result.stats.device == "cuda" and result.stats.kernel == "look-ahead" and result.predecessors.shape == (n, n)
launched = [
    [told["key"], told["name"], told["types"], grid, [w if abs(w) < 1 << 32 else 0 for w in words]]
    for told, grid, words in fake_cuda_core.launched
]
print(json.dumps([any(m.partition(".")[0] in ("numba", "llvmlite") for m in sys.modules), launched]))
"""


def test_cuda_core_takes_every_call_that_the_fake_takes() -> None:
    core = pytest.importorskip("cuda.core", reason="the CUDA packages are not installed")
    import fake_cuda_core

    for one in fake_cuda_core.PUBLIC:
        real = getattr(core, one.__name__)
        for name in vars(one):
            if not name.startswith("_"):
                assert hasattr(real, name), (one, name)
                if callable(getattr(one, name)):
                    assert_takes(getattr(real, name), getattr(one, name))
    assert_takes(core.launch, fake_cuda_core.launch)
    assert isinstance(core.LEGACY_DEFAULT_STREAM, core.Stream)


def assert_takes(real: Callable[..., Any], fake: Callable[..., Any]) -> None:
    """Fail unless the real function takes each argument of the fake one at that place or by that name, and needs no other."""
    given, taken = (inspect.signature(function).parameters for function in (fake, real))
    places = [name for name, one in given.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert places == list(taken)[: len(places)], real
    assert {name for name, one in given.items() if one.kind is one.KEYWORD_ONLY} <= set(taken), real
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    assert {name for name, one in taken.items() if one.default is one.empty and one.kind not in optional} <= set(given), real


def pythonpath() -> str:
    root = UNIT.parents[1]
    return os.pathsep.join(map(str, (root, root / "kernels", UNIT)))


def test_compiled_code_is_launched_without_numba(tmp_path: Path) -> None:
    brought, launched = json.loads(run_python(SOLVING, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=pythonpath()))
    assert not brought and len(launched) > 200
    names = {str(name) for _, name, *_ in launched}
    before, after = "survey_matrix survey_arcs outward inward relax_arcs rows_of enter clear lower lower_pairs", "look leave"
    assert names >= {*before.split(), "pivot", "panels", "rest", *after.split(), "start", "turn", "lowest", "count", "unfound"}
