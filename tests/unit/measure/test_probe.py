"""Probes of peak rates: each form of a relaxation has one, its result is checked, and other work makes it noisy."""

from collections.abc import Container
from types import SimpleNamespace

import numpy as np
import pytest
from pretending import Pretend

from fwtui.common.cores import usable_cores
from fwtui.stream.event import Cache
from fwtui.stream.events import Limits
from fwtui_kernels.compiled.cpu_vectors import ROWS, width_of
from fwtui_kernels.forms import FORMS as INNER_LOOPS
from fwtui_kernels.forms import HOPPER
from fwtui_kernels.plan import DTYPES
from fwtui_kernels.probes import probe_cpu
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


@pytest.mark.parametrize("dtype", [pytest.param(name, marks=[pytest.mark.slow] * (name != "int16")) for name in DTYPES])
def test_the_cpu_probe_is_checked_before_its_time_counts(dtype: str, pretend: Pretend) -> None:
    from fwtui.measure import probe as measured

    pretend.limits(measured, SECONDS=0.01)
    assert measured.cpu_rate(dtype) > 1e6
    for broken in (lambda *_: None, lambda cells, *_: cells.fill(0)):
        with pytest.raises(measured.ProbeError, match="is wrong"):
            measured.cpu_rate(dtype, broken)


@pytest.mark.parametrize("late", [[1], [2], [4, 5], [10, 11, 13], range(20)])
def test_a_burst_that_waited_for_a_core_is_not_long(late: Container[int], monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from fwtui.measure import probe as measured

    waited, worked, calls, each = 0.0, 0.0, 0, 1e-7

    def run(cells: np.ndarray, to: np.ndarray, strips: np.ndarray, turns: int, width: int) -> None:
        nonlocal waited, worked, calls
        threads = len(cells) // ROWS
        sums = to.reshape(threads, ROWS, -1, 1) + strips.reshape(threads, 1, -1, width)
        np.minimum(cells, sums.min(2).reshape(cells.shape), out=cells)
        worked += threads * (1e-4 + turns * each)  # each thread's: the call itself, and its turns
        waited += 0.05 if calls in late else 0.0
        calls += 1

    clocks = SimpleNamespace(perf_counter=lambda: worked + waited, process_time=lambda: worked)
    monkeypatch.setattr(measured, "time", clocks)
    relaxations = numba.get_num_threads() * ROWS * probe_cpu.DEPTH * width_of(4, probe_cpu.TILE)
    assert measured.cpu_rate("float32", run) == pytest.approx(relaxations / each, rel=0.1)

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

    rates: dict[str, float] = dict(zip(DTYPES, (1e9, 3e9, 2e9, 4e9), strict=True))
    pretend.limits(measured, COPY=1 << 16, SECONDS=0.01)
    told: list[Limits] = []
    caches = (Cache(level=1, bytes=1 << 15), Cache(level=2, bytes=1 << 20), Cache(level=3, bytes=1 << 21, cores=2))
    measured.measure(HostEngine(Target("cpu")), told.append, lambda: 2.5, rates.__getitem__, caches)
    assert [len(one.forms) for one in told] == [1, 2, 3, 4, 4]
    assert [one.complete for one in told] == [False] * 4 + [True]
    assert {f.form: f.relaxations_per_second for f in told[-1].forms} == rates
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
