"""What the GPU tests would run: enough of it, and not too much. The lists are made here, where there is no GPU."""

from __future__ import annotations

import importlib
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from fwtui.experiment.experiment import settle
from fwtui_kernels import registry
from fwtui_kernels.plan import Target

GPU = Path(__file__).resolve().parents[2] / "gpu"
CUDA = [k for k in registry().values() if k.backend == "cuda"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of tests/gpu by its name."""
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    monkeypatch.setattr(sys, "path", [str(GPU), *sys.path])
    return importlib.import_module


def test_two_values_meet_in_few_rows(module: Any) -> None:
    covering = module("covering").covering
    choices = {"a": (1, 2, 3), "b": (1, 2, 3, 4), "c": "xy", "d": (0, 1)}
    rows = covering(choices)
    assert rows == covering(choices) and len(rows) < 16 < 48
    for first, second in combinations(choices, 2):
        assert {(row[first], row[second]) for row in rows} == set(product(choices[first], choices[second]))
    once = covering(choices, strength=1)
    assert len(once) == 4 and all({row[name] for row in once} == set(values) for name, values in choices.items())
    assert covering({"a": (1, 2)}) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(("strength", "most"), [(1, 90), (2, 220)])
def test_small_runs_use_every_value_of_every_kernel_in_few_builds(module: Any, strength: int, most: int) -> None:
    asked = module("small_runs").experiments((9,), strength=strength)
    builds = {(e.kernel, e.dtype, e.tile, tuple(sorted(e.options.items()))) for e in asked}
    assert len(builds) <= most
    for kernel in CUDA:
        mine = [e for e in asked if e.kernel == kernel.id]
        assert {e.dtype for e in mine} == set(kernel.dtypes) and {e.launch for e in mine} == set(kernel.launch_modes)
        assert {e.tile for e in mine} == set(kernel.tiles or (0,))
        for option in kernel.options:
            assert {e.options[option.name] for e in mine} == set(option.values)


def test_what_a_gpu_lacks_is_left_out(module: Any) -> None:
    old = module("small_runs").experiments((9,), Target("cuda", (8, 0)), 1)
    new = module("small_runs").experiments((9,), Target("cuda", (9, 0)), 1)
    assert {(e.kernel, e.dtype) for e in new} - {(e.kernel, e.dtype) for e in old} == {
        ("register-tiled", "int16"),
        ("look-ahead", "int16"),
        ("distributed", "int16"),
        ("sparse", "int16"),
    }


def test_random_cases_reach_every_kernel_type_tile_and_sign(module: Any) -> None:
    champion = module("test_champion")
    cases = [champion.random_case(seed) for seed in range(champion.CASES)]
    assert cases == [champion.random_case(seed) for seed in range(champion.CASES)] == [settle(e) for e in cases]
    assert len({(e.n, e.tile, e.dtype) for e in cases}) > 180
    for name in champion.TOP:
        kernel = registry()[name]
        mine = [e for e in cases if e.kernel == name]
        assert {(e.dtype, e.tile) for e in mine} == set(product(kernel.dtypes, kernel.tiles))
        assert {(e.dtype, e.negative > 0) for e in mine} >= {(t, s) for t in ("float32", "int32") for s in (False, True)}
