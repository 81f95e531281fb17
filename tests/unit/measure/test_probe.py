"""Probes of peak rates: each form of a relaxation has one, its result is checked, and other work makes it noisy."""

from collections.abc import Container
from types import SimpleNamespace
from typing import Any, cast

import numba
import numpy as np
import pytest
from pretending import Pretend

from fwtui.common.cores import usable_cores
from fwtui.measure.cpu_loops import inner_loop
from fwtui.stream.event import Cache
from fwtui.stream.events import Limits
from fwtui_kernels.forms import FORMS as INNER_LOOPS
from fwtui_kernels.forms import HOPPER, RelaxForm
from fwtui_kernels.plan import DTYPES
from fwtui_kernels.probes import probe_cpu
from fwtui_kernels.probes.probe_cpu import Tile
from fwtui_kernels.probes.probe_forms import forms_of, right_for


def test_every_form_has_a_probe_and_every_distance_a_form() -> None:
    for form in INNER_LOOPS:
        assert form.dtype == form.key.partition("-")[0] and form.backend == "cuda"
        assert ("-" in form.key) == bool(form.two) and (form.capability == HOPPER) == (form.lanes == 2)
    for backend in ("cpu", "cuda"):
        for dtype in DTYPES:
            assert any(not f.nonnegative for f in right_for(backend, dtype, False)) or dtype == "int16"
            assert set(right_for(backend, dtype, False)) <= set(right_for(backend, dtype, True))
            assert right_for(backend, dtype, True)
    assert {f.key for f in forms_of("cuda", (8, 0))} == {"float32", "float32-two", "int32", "int32-mixed", "float64"}
    assert len(forms_of("cuda", (9, 0))) == 7


@pytest.mark.parametrize(
    "form", [pytest.param(f, id=f.key, marks=[pytest.mark.slow] * (f.key != "int16")) for f in forms_of("cpu")]
)
def test_the_cpu_probe_is_checked_before_its_time_counts(form: RelaxForm, pretend: Pretend) -> None:
    from fwtui.measure import probe as measured
    from fwtui_kernels.compiled.cpu_vectors import vector_bytes

    pretend.limits(measured, SECONDS=0.01)
    probe = probe_cpu.build(form, Tile(4, 2))
    assert probe.lanes * np.dtype(probe.dtype).itemsize == vector_bytes()
    assert measured.cpu_rate(probe) > 1e6
    for broken in (lambda *_: None, lambda c, *_: c.fill(0)):
        with pytest.raises(measured.ProbeError, match="is wrong"):
            measured.cpu_rate(probe._replace(run=broken))


@pytest.mark.parametrize("late", [[1], [2], [4, 5], [10, 11, 13], range(20)])
def test_a_burst_that_waited_for_a_core_is_not_long(late: Container[int], monkeypatch: pytest.MonkeyPatch) -> None:
    from fwtui.measure import probe as measured

    waited, worked, calls, each, tile = 0.0, 0.0, 0, 1e-7, Tile(2, 1)

    def run(c: np.ndarray, a: np.ndarray, b: np.ndarray, turns: int, stride: int) -> None:
        nonlocal waited, worked, calls
        sums = a.reshape(len(a), tile.depth, -1, 1) + b.reshape(len(b), tile.depth, 1, -1)
        np.minimum(c, sums.min(1).reshape(c.shape), out=c)
        worked += len(c) * (1e-4 + turns * each)  # each thread's: the call itself, and its turns
        waited += 0.05 if calls in late else 0.0
        calls += 1

    clocks = SimpleNamespace(perf_counter=lambda: worked + waited, process_time=lambda: worked)
    monkeypatch.setattr(measured, "time", clocks)
    probe = probe_cpu.ProbeLoop(run, "float32", tile, 4)
    threads = numba.get_num_threads()
    assert measured.cpu_rate(probe) == pytest.approx(threads * probe.relaxations / each, rel=0.1)

    def update(cells: np.ndarray, turns: int, number: int) -> None:
        nonlocal waited, worked
        cells += number
        worked += len(cells) * turns * each
        waited += 0.05

    # in a cache that cores share, one alone shares it with no other
    assert measured._update_rate(update, np.zeros((1, 512), np.int64), in_own_cache=False) == pytest.approx(2 * 4096 / each)


def test_peak_rates_are_reported_form_by_form_and_complete_at_the_end(pretend: Pretend) -> None:
    from fwtui.engine.engine import HostEngine
    from fwtui.measure import probe as measured
    from fwtui_kernels.plan import Target

    rates = iter((1e9, 3e9, 2e9) * 5)
    pretend.limits(measured, COPY=1 << 16, SECONDS=0.01)
    told: list[Limits] = []
    caches = (Cache(level=1, bytes=1 << 15), Cache(level=2, bytes=1 << 20), Cache(level=3, bytes=1 << 21, cores=2))
    measured.measure(HostEngine(Target("cpu")), told.append, lambda: 2.5, lambda probe: next(rates), caches)
    assert [len(one.forms) for one in told] == [1, 2, 3, 4, 5, 5]
    assert [one.complete for one in told] == [False] * 5 + [True]
    assert {f.form: f.relaxations_per_second for f in told[-1].forms} == dict.fromkeys([f.key for f in forms_of("cpu")], 3e9)
    assert told[-1].copy_bytes_per_second and told[-1].t == 2.5 and told[-1].device
    assert [one.level for one in told[-1].levels] == [1, 2, 0], "a level that holds no more than the one before is none"
    assert all(one.bytes_per_second and one.one_core for one in told[-1].levels)


@pytest.mark.parametrize(
    ("idle", "own", "disturbed"), [(0.5, 0.5, False), (0.0, 1.0, False), (0.0, 0.5, True), (0.95, 0.0, False)]
)
def test_a_limit_is_noisy_if_other_programs_took_the_cores(idle: float, own: float, disturbed: bool) -> None:
    from fwtui.measure.probe import OtherWork

    cores = sorted(usable_cores())
    told, clock = iter([0.0, idle]), iter([(0.0, 0.0), (1.0, own * len(cores))])
    system = SimpleNamespace(cpu_times=lambda percpu: [SimpleNamespace(idle=next(told))] * (max(cores) + 1))
    assert OtherWork(system, lambda: next(clock)).disturb() == disturbed


def test_float32_is_compared_by_its_bits_in_one_instruction() -> None:
    probe = probe_cpu.build(next(f for f in forms_of("cpu") if f.key == "float32-bits"), Tile(4, 2))
    cells = np.ones((1, probe.tile.rows * probe.width), np.float32)
    probe.run(cells, cells, cells, 1, 0)
    (code,) = cast("Any", probe.run).inspect_asm().values()
    loop = inner_loop(code)
    assert loop is not None and loop.lanes == probe.lanes
    minima = loop.relaxations // loop.lanes
    names = [name for name, count in loop.mix.items() if count == minima and "add" not in name]
    assert minima == probe.relaxations // probe.lanes and any("min" in name for name in names), loop.mix
