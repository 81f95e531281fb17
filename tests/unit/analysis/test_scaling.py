"""The model of one graph on several devices, against times on two H200 GPUs (NVLink, NCCL, int32, tile 128)."""

from math import sqrt

import pytest

from fwtui.analysis.scaling import LinearCost, Measured, Rates, efficiency, fit, grid, grown, limits, measured, predict, shape_on
from fwtui.sessions.library import load_model, resolve
from fwtui.stream.events import Part
from fwtui_kernels.parts.distributed import panel_bytes, plan
from fwtui_kernels.plan import EVERY, Shape

ALONE = {4096: 5.05e-3, 16384: 0.271}  # seconds of `distributed` on one
ON_TWO = {4096: 4.06e-3, 8192: 19.4e-3, 16384: 0.139, 32768: 1.08}
# from the shares of the phase pass on two: 23 us, and the bytes at the rate at which one GPU copies to the other
LINK = LinearCost(23e-6, 1 / 390e9)
CPU = Rates(LinearCost(0, 1e-9), LinearCost(1e-5, 2e-10), LinearCost(1e-5, 1e-10), LinearCost(1e-4, 1e-9), round=1e-5)


def shape(n: int, ranks: int = 1, tile: int = 128) -> Shape:
    return Shape(n=n, tile=tile, dtype="int32", ranks=ranks)


def sent(n: int) -> Part:
    """The broadcasts of a pass on two."""
    rounds, size = n // 128, panel_bytes(shape(n, 2))
    seconds = rounds * LINK.at(size)
    return Part(phase="broadcast", seconds=seconds, launches=rounds, relaxations=0, device_bytes=0, link_bytes=rounds * size)


def h200(two: bool) -> Rates:
    """From the times on one, and phase passes that are recorded (of look-ahead's launches); with `two` also the times on two."""
    model, _ = load_model(resolve("h200-champion"))
    runs = [run for run in model.runs.values() if (run.experiment.dtype, run.experiment.tile) == ("int32", 128)]
    phased = {run.n: measured(model, run) for run in runs}
    told = [phased[n]._replace(seconds=seconds) for n, seconds in ALONE.items()]
    if two:
        told += [Measured(shape(n, 2), seconds, (sent(n),), True, told[0].turn) for n, seconds in ON_TWO.items()]
    rates = fit(told)
    assert rates is not None and rates.lanes and rates.turn == pytest.approx(34e-6, rel=0.02)
    return rates._replace(link=LINK)


def test_gpus_are_predicted_from_fewer_and_the_link_and_two_add_the_share_that_a_broadcast_holds() -> None:
    off = {n: predict(h200(two=False), shape(n, 2)).seconds / seconds - 1 for n, seconds in ON_TWO.items()}
    # it does not know yet what a broadcast that waits takes away from the rest
    assert off == pytest.approx({4096: 0.025, 8192: -0.059, 16384: -0.014, 32768: -0.002}, abs=0.005)
    rates = h200(two=True)
    assert rates.broadcast_share * 132 == pytest.approx(16, abs=1)  # multiprocessors; a channel of NCCL takes one
    assert all(predict(rates, shape(n, 2)).seconds == pytest.approx(seconds, rel=0.03) for n, seconds in ON_TWO.items())
    assert all(predict(rates, shape(n)).seconds == pytest.approx(seconds, rel=0.03) for n, seconds in ALONE.items())
    model, _ = load_model(resolve("h200-four-gpus"))
    runs = [run for run in model.runs.values() if run.experiment.dtype == "int32" and run.n <= 65536]
    on = {count: [run for run in runs if max(1, len(run.experiment.places)) == count] for count in (1, 2, 4)}
    rates = fit(measured(model, run) for run in (*on[1], *on[2]))
    assert rates is not None
    off = {run.n: predict(rates, shape(run.n, 4)).seconds / (run.seconds or 0.0) - 1 for run in on[4]}
    # where the next panel limits, its short launches overlap more than the phase passes show
    assert off == pytest.approx({4096: 0.12, 8192: -0.04, 16384: -0.019, 32768: -0.006, 65536: -0.002}, abs=0.01)


@pytest.mark.parametrize("rates", [CPU, CPU._replace(lanes=True, turn=1e-4, broadcast_share=0.1)])
@pytest.mark.parametrize("n", [128, 1000, 4096])
def test_more_ranks_never_do_less_work_and_one_rank_only_computes(rates: Rates, n: int) -> None:
    alone = predict(rates, shape(n))
    assert alone == predict(rates._replace(link=None, broadcast_share=0.9), shape(n)) and alone.broadcast == 0.0
    work = [ranks * predict(rates, shape(n, ranks)).seconds for ranks in range(1, 33)]
    assert all(total >= work[0] * (1 - 1e-12) for total in work)
    assert all(efficiency(rates, shape(n), ranks) <= 1 + 1e-12 for ranks in (2, 8, 32))


@pytest.mark.parametrize("flat", [False, True])
def test_a_faster_link_never_makes_it_slower(flat: bool) -> None:
    links = (LinearCost(1e-4, each) for each in (1e-7, 1e-8, 1e-9, 1e-10, 0.0))
    seconds = [predict(CPU._replace(link=link, lanes=True), shape(4096, 16), flat).seconds for link in links]
    assert seconds == sorted(seconds, reverse=True) and seconds[0] > seconds[-1]


def test_the_rates_of_made_up_runs_are_found_again() -> None:
    """Phases as the plan's own launches would take them."""
    runs = []
    for n, ranks in ((512, 1), (1024, 1), (512, 2), (1024, 2)):
        of = shape(n, ranks, 64)
        parts = []
        steps = list(plan(of, False, words=False))
        for phase, line in (("pivot", CPU.pivot), ("panels", CPU.panels), ("rest", CPU.rest), ("broadcast", CPU.link)):
            own = [step for step in steps if step.phase == phase]
            if not own:
                continue
            assert line is not None
            several = own[0].rank == EVERY
            amounts = [step.cost.link_bytes / (ranks - 1) if several else step.cost.relaxations for step in own]
            seconds = sum(map(line.at, amounts)) / (1 if several else ranks)
            cost = {"relaxations": sum(s.cost.relaxations for s in own), "link_bytes": sum(s.cost.link_bytes for s in own)}
            parts.append(Part(phase=phase, seconds=seconds, launches=len(own), device_bytes=0, **cost))
        runs.append(Measured(of, predict(CPU._replace(broadcast_share=0.2), of).seconds, tuple(parts)))
    found = fit(runs)
    assert found is not None and found.link is not None
    for line, expected in ((found.panels, CPU.panels), (found.rest, CPU.rest), (found.link, CPU.link)):
        assert expected is not None and tuple(line) == pytest.approx(tuple(expected), rel=1e-6)
    assert found.round == pytest.approx(CPU.round) and found.broadcast_share == pytest.approx(0.2)
    assert fit([run._replace(parts=()) for run in runs]) is None
    alone = fit([run for run in runs if run.shape.ranks == 1])
    assert alone is not None and alone.link is None and limits(alone, shape(512)) == []


def test_a_slow_link_favours_two_dimensions_and_sizes_grow_with_the_ranks() -> None:
    rates = h200(two=True)
    slow = limits(rates._replace(link=LinearCost(23e-6, 1 / 25e9)), shape(32768))
    assert "efficiency falls below 70 % at 16 devices (57 %)" in slow[0]
    assert "faster from 16 devices on (86 % instead of 57 %)" in slow[1]
    assert "nowhere more than 5 % faster" in limits(rates, shape(16384))[1]
    assert "stays above 70 % up to 512 devices" in limits(rates, shape(32768), weak=True)[0]
    assert [grown(4096, ranks, 128) for ranks in (1, 2, 4, 8)] == [4096, 5760, 8192, 11648]
    assert grown(500, 1, 64) == 500 and grown(16, 2, 64) == 64 and grown(100, 4, 0) == 200
    there = shape_on(shape(4096), 3, True)
    assert there.ranks == 3 and there.n % 128 == 0 and there.n == pytest.approx(4096 * sqrt(3), rel=0.02)
    assert [grid(ranks) for ranks in (1, 2, 7, 12, 64)] == [(1, 1), (2, 1), (7, 1), (4, 3), (8, 8)]
