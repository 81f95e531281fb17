"""Comparison of runs: the interval against reference values, the verdicts, and when there is none."""

import itertools
import math
import random
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from builders import SessionBuilder, header, run_parts
from msgspec.structs import replace

from fwtui.analysis.compare import (
    FASTER,
    NOT_COMPARED,
    SAME,
    SLOWER,
    UNCLEAR,
    ComparedRun,
    classify,
    compare,
    pairs,
    run_name,
    speedup,
)
from fwtui.analysis.disturbances import disturbances, instrumentation, phase_times_warning
from fwtui.analysis.ratio_interval import ratio
from fwtui.analysis.report import result
from fwtui.common import units
from fwtui.experiment.experiment import Experiment, changed, settle
from fwtui.stream import events
from fwtui.tui.widgets import run_labels

STEADY = (1.000, 1.001, 0.999, 1.002, 0.998, 1.0005)
SERIAL = settle(Experiment(kernel="serial", n=256))
TILED = settle(Experiment(kernel="tiled-cpu", n=256))
NAIVE = settle(Experiment(kernel="naive", n=256))
ALL_CORES = settle(Experiment(kernel="tiled-cpu", n=256, tile=16))


class Session(SessionBuilder):
    """Made-up runs on four cores."""

    def __init__(self, created: str = "2025-01-01T12:00:00+00:00") -> None:
        super().__init__(header(created=created, machine=events.Machine(cpu="a", cores=4)))

    def add(self, seconds: Sequence[float], experiment: Experiment = TILED, backend: str = "cpu", **more: Any) -> ComparedRun:
        """Add a run; `more` has seconds of phases, a number of ranks, `throttle` and `others` of readings, and facts."""
        t, parts = 100.0 * (len(self.model.runs) + 1), run_parts(more.pop("phases", {}))
        ranks = tuple(events.RankOf(rank=rank, backend=backend) for rank in range(more.pop("ranks", 0)))
        read = {"throttle": more.pop("throttle", 0), "other_cpu_utilisation": more.pop("others", None)}
        ends = itertools.accumulate(seconds, initial=t)
        readings = [events.Telemetry(t=begin + s / 2, **read) for begin, s in zip(ends, seconds, strict=False)]
        self.run(experiment, *readings, t=t, backend=backend, passes=seconds, parts=parts, ranks=ranks, **more)
        return ComparedRun(self.model, self.model.runs[len(self.model.runs)])


def times(factor: float) -> tuple[float, ...]:
    return tuple(factor * s for s in STEADY)


@pytest.mark.parametrize(("few", "many"), [(4, 4), (3, 5), (9, 8), (5, 12), (20, 20), (31, 31)])
def test_the_interval_contains_one_exactly_if_mann_whitney_does_not_reject(few: int, many: int) -> None:
    from scipy.stats import mannwhitneyu  # takes a second, in every process that would import it above

    chance, seen = random.Random(3), set[bool]()
    for shift in (1.0, 1.02, 1.05, 1.1, 1.5):
        ours = tuple(shift * chance.gauss(1, 0.03) for _ in range(few))
        theirs = tuple(chance.gauss(1, 0.03) for _ in range(many))
        found = ratio(ours, theirs)
        assert found is not None and found.low <= found.estimate <= found.high
        rejected = bool(mannwhitneyu(ours, theirs, method="exact").pvalue <= 0.05)
        assert (not found.low <= 1 <= found.high) == rejected
        seen.add(rejected)
    assert len(seen) == 2 and ratio((1.0,) * 3, (2.0,) * 4) is ratio((1.0,) * 2, (2.0,) * 7) is None, "too few for one"


def test_an_interval_is_the_same_the_other_way_round_and_survives_any_times() -> None:
    one, other = ratio(times(1.3), STEADY), ratio(STEADY, times(1.3))
    assert one is not None and other is not None
    assert one.low == pytest.approx(1 / other.high) and one.estimate == pytest.approx(1 / other.estimate)
    for odd in itertools.product((0.0, 1e9, 1e-300, math.inf), repeat=4):
        found = ratio(odd, STEADY)
        assert found is None or all(map(math.isfinite, found[:3]))
    assert ratio((), ()) is None


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, FASTER), (0.97, FASTER), (1.0, SAME), (1.004, SAME), (1.03, SLOWER)])
def test_verdicts(factor: float, verdict: str) -> None:
    session = Session()
    base = session.add(STEADY, SERIAL)
    found = compare(session.add(times(factor)), base)
    assert found.verdict == verdict and found.speedup == pytest.approx(1 / factor)
    assert found.ratio is not None and found.ratio.low <= factor <= found.ratio.high


def test_an_interval_across_the_threshold_is_unclear() -> None:
    session = Session()
    base = session.add([1.0, 1.2, 0.8, 1.1, 0.9, 1.15], SERIAL)
    verdict, why, _ = classify(session.add([1.05, 1.25, 0.85, 1.0, 0.95, 1.1]), base)
    assert verdict == UNCLEAR and "more repetitions" in why
    session = Session()
    whole = session.add(STEADY, SERIAL)
    other = session.add(times(0.5))
    slim = other._replace(run=replace(other.run, samples=()))
    for run, base in ((slim, whole), (whole, slim)):
        verdict, why, interval = classify(run, base)
        assert (verdict, interval) == (UNCLEAR, None)
        assert f"this recording contains only 0 of the {len(STEADY)} repetitions of run {other.run.id}" in why
    tenth = session.add(times(0.1), ALL_CORES)
    verdict, why, _ = classify(tenth._replace(run=replace(tenth.run, samples=())), whole)
    assert verdict == FASTER and why == "about 10.0x (6 repetitions); for a better estimate run it again"


@pytest.mark.parametrize(("passes", "words"), [(1, "1 repetition per run is too few"), (2, "2 repetitions per run are too few")])
def test_few_close_repetitions_are_unclear(passes: int, words: str) -> None:
    assert [units.gain(ratio) for ratio in (8.123, 0.5, 0.0045)] == ["8.12x", "0.50x", "1/222"], "never rounded to nothing"
    session = Session()
    base = session.add([1.0] * passes, SERIAL)
    found = compare(session.add([0.4] * passes), base)
    assert (found.verdict, found.ratio, found.speedup) == (UNCLEAR, None, None) and found.why.startswith(words)
    assert found.total.change is None
    for ours, theirs in (([1.0, 1.1, 9.0], [10.0, 11.0, 12.0]), ([1.0, 1.2, 1.0], [2.0, 2.1, 2.0])):
        found = compare(session.add(ours), session.add(theirs, SERIAL))
        assert found.verdict == UNCLEAR and found.speedup is None, "they nearly meet"


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "speedup", "words"),
    [
        ([0.0103], [1.0], FASTER, 1 / 0.0103, "about 97.1x (one repetition)"),
        ([123.0], [1.0], SLOWER, 1 / 123, "about 123x (one repetition)"),
        ([1.0, 1.1, 1.2], [0.16, 0.15, 0.14], SLOWER, 0.15 / 1.1, "about 7.33x (3 repetitions)"),
        ([1.0], [4.0, 4.1, 4.2, 4.1, 4.0], FASTER, 4.1, "about 4.10x (one repetition)"),
        ([4.31, 4.32, 4.32], [8.57, 8.58, 8.58], FASTER, 8.58 / 4.32, "about 1.99x (3 repetitions)"),
    ],
)
def test_few_repetitions_show_a_difference_beyond_noise(ours: Any, theirs: Any, verdict: str, speedup: float, words: str) -> None:
    session = Session()
    found = compare(session.add(ours), session.add(theirs, SERIAL))
    assert found.verdict == verdict and found.why.startswith(words) and found.speedup == pytest.approx(speedup)
    assert found.speedup_text.startswith("~"), "never as exact as one with an interval"


def test_a_run_that_drifts_is_judged_by_passes_from_all_of_it() -> None:
    session = Session()
    steady, drifting = session.add([1.0 + place * 1e-4 for place in range(20)], SERIAL), session.add([0.5] * 20)
    done = drifting.run.done
    assert done is not None
    spread = tuple(1.2 + place * 1e-4 for place in range(100))
    drifted = drifting._replace(run=replace(drifting.run, done=replace(done, count=500, median=1.2, passes=spread)))
    assert compare(drifting, steady).verdict == FASTER, "by its first passes alone"
    found = compare(drifted, steady)
    assert found.verdict == SLOWER and found.speedup == pytest.approx(1 / 1.2, rel=0.01)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"verdict": "unverified"}, "is unverified, so its time does not count"),
        ({"verdict": "wrong"}, "is wrong"),
        ({"outcome": "cancelled"}, "was cancelled"),
        ({"backend": "simulator"}, "nothing simulated is timed"),
        ({"experiment": settle(Experiment(kernel="tiled-cpu", n=128))}, "n = 128 is not the same work as n = 256"),
        ({"experiment": changed(TILED, seed=8)}, "the graphs differ (seed 8 against 7); only times on the same graph"),
    ],
)
def test_unverified_and_untimed_runs_are_not_compared(more: dict, words: str) -> None:
    session = Session()
    phases = {"pivot": 0.2, "rest": 0.8}
    good, bad = session.add(STEADY, phases=phases), session.add(times(0.5), phases=phases, **more)
    for pair in ((bad, good), (good, bad)):
        found = compare(*pair)
        assert found.verdict == NOT_COMPARED and found.ratio is None and found.speedup is None and not found.speedup_text
        assert not any(part.change for part in (found.total, *found.phases, *found.stages)), "no ratio in disguise"
    assert words in compare(bad, good).why


@pytest.mark.parametrize("passes", [STEADY, (1.0,)])
@pytest.mark.parametrize(
    ("backend", "experiment", "more", "words"),
    [
        ("cuda", NAIVE, {"throttle": 0x8}, "run 2 was throttled (hardware slowdown)"),
        ("cuda", NAIVE, {"others": 0.9}, "run 2 was noisy (other processes used 90 % of the CPU)"),
        ("cpu", TILED, {"others": 0.6}, "run 2 was noisy (other processes used 60 % of the CPU)"),
    ],
)
def test_a_disturbed_run_is_not_slower(backend: str, experiment: Experiment, more: Any, words: str, passes: Any) -> None:
    session = Session()
    good = session.add(passes, SERIAL, backend="cpu")
    slow = session.add([4 * s for s in passes], experiment, backend=backend, **more)
    for pair in ((slow, good), (good, slow)):
        verdict, why, interval = classify(*pair)
        assert verdict == UNCLEAR and interval is not None and words in why


@pytest.mark.parametrize(
    ("fast", "slow", "factor", "words"),
    [
        ((ALL_CORES, "cpu", 0.6), (SERIAL, "cpu", 0.0), 12.3, "≥ 10x"),  # noise made the faster one slower: nothing is lost
        ((ALL_CORES, "cpu", 0.87), (SERIAL, "cpu", 0.87), 20.1, "≥ 10x"),  # it cost both alike: the margin alone is lost
        ((TILED, "cpu", 0.2), (ALL_CORES, "cpu", 0.5), 20.1, "≥ 8x"),  # the slower one lost more
        ((TILED, "cpu", 0.2), (ALL_CORES, "cpu", 0.97), 20.1, ""),
        ((NAIVE, "cuda", 0.87), (SERIAL, "cpu", 0.87), 20.1, "≥ 6x"),  # a GPU computes on
        ((ALL_CORES, "cpu", 1.0), (ALL_CORES, "cpu", 1.0), 99.0, ""),  # nothing was left for either
    ],
)
def test_a_large_difference_is_judged_by_its_part_beyond_noise(fast: Any, slow: Any, factor: float, words: str) -> None:
    session = Session()
    one, other = (
        session.add(passes, settle(changed(experiment, dtype=dtype)), backend, others=others)
        for dtype, passes, (experiment, backend, others) in (("float32", STEADY, fast), ("int32", times(factor), slow))
    )
    found, back = compare(one, other), compare(other, one)
    assert (found.verdict, back.verdict) == ((FASTER, SLOWER) if words else (UNCLEAR, UNCLEAR))
    if words:
        assert found.speedup_text == words and back.speedup_text == words.replace("≥ ", "≤ 1/").removesuffix("x")
        assert found.why.startswith(f"{words} (noisy): run")
        names = [run_name(e.run) if fast[0].kernel != slow[0].kernel else f"run {e.run.id}" for e in (one, other)]
        assert found.headline.endswith(f": {words} speedup over {names[1]} ({units.gain(factor)}, noisy)")
        assert back.headline.endswith(f": {words} slower than {names[0]} ({units.gain(factor)}, noisy)")
        assert found.interval is None and found.speedup == pytest.approx(factor)


def test_a_disturbance_is_named_once_with_all_its_evidence() -> None:
    model, run, _ = Session().add(STEADY, others=0.6, phases={"all": 0.7})
    assert run.done is not None
    run = replace(run, done=replace(run.done, spread=0.01, instrumentation=-0.3))
    (found,) = disturbances(run, model.evidence(run))
    assert str(found) == "noisy: its instrumented repetitions took 30 % less time; other processes used 60 % of the CPU"
    assert run_labels.outcome(run, model) == "✓ verified · noisy"
    model, run, _ = Session().add(STEADY, throttle=0x8)
    assert disturbances(run, model.evidence(run)) == () == (*result(model, run)["throttled"],), "of a GPU's clock"


@pytest.mark.parametrize(
    ("seconds", "spread", "words"), [(1.4, 0.01, "40 % longer"), (0.7, 0.01, "30 % less"), (1.05, 0.01, ""), (1.4, 0.5, "")]
)
def test_phases_with_a_large_timer_overhead_are_approximate(seconds: float, spread: float, words: str) -> None:
    run = Session().add(STEADY, phases={"all": seconds}).run
    assert run.done is not None
    run = replace(run, done=replace(run.done, spread=spread, instrumentation=seconds - 1))
    said = phase_times_warning(run)
    expected = f"the instrumented repetitions took {words}; the per-phase times are approximate"
    assert said == (expected if words else "")
    assert ("the per-phase times are approximate" in instrumentation(run)) == bool(words)


@pytest.mark.parametrize(
    ("passes", "again", "near", "far", "words"),
    [(STEADY, 1.1, 1.06, 1.5, "differ by 10"), ((1.0,), 5.0, 4.0, 40.0, "differ by 400")],
    ids=["many passes", "one pass"],
)
def test_within_the_spread_it_is_unclear(passes: tuple[float, ...], again: float, near: float, far: float, words: str) -> None:
    session = Session()
    base = session.add(passes, others=0.0)
    session.add([9 * s for s in passes], others=0.6)
    session.add([9 * s for s in passes], others=0.0, verdict="wrong")  # neither of them says anything of repetitions
    session.add([again * s for s in passes], others=0.0)
    verdict, why, _ = classify(session.add([near * s for s in passes], SERIAL), base)
    assert verdict == UNCLEAR and words in why
    assert classify(session.add([far * s for s in passes], changed(SERIAL, dtype="int32")), base)[0] == SLOWER


def test_results_of_twice_as_many_runs_are_twice_the_work() -> None:
    def calls(runs: int) -> int:
        session, counted = Session(), 0
        for number in range(runs):  # each of the last is slower than repetitions of the first differ
            first = number < runs / 2
            session.add(times(1.0 + 0.1 * (number % 2) if first else 2.0), SERIAL if first else TILED, ranks=2 * (number % 2))

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            told = [result(session.model, run, "serial") for run in session.model.runs.values()]
        finally:
            sys.setprofile(None)
        assert told[-1]["one_device"] and told[-1]["baseline"] and "takes" not in told[-1]["because"]
        return counted

    calls(10)  # what is looked up once for the whole program
    few, many = calls(60), calls(120)
    assert many < 2.3 * few


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, SAME), (1.004, SAME), (2.5, UNCLEAR), (0.4, UNCLEAR), (100, UNCLEAR)])
def test_the_same_experiment_again_is_never_faster_or_slower(factor: float, verdict: str) -> None:
    session = Session()
    base = session.add(STEADY)
    found = compare(session.add(times(factor), changed(base.run.experiment, repeats=6)), base)
    assert found.verdict == verdict
    if verdict == UNCLEAR:
        took = {0.4: "59.9 % to 60.1 % less time", 2.5: "2.50x the time", 100: "99.8x the time"}[factor]
        assert found.why == f"the same experiment took {took} this time; rerun it on an idle machine"
    few = session.add([1.0], SERIAL), session.add([50.0], SERIAL)
    assert classify(*few)[0] == UNCLEAR and "the same experiment" in classify(*few)[1]


def test_the_same_experiment_of_another_session_is_compared() -> None:
    before, after, copied = Session(), Session("2025-01-02T12:00:00+00:00"), Session()
    base = before.add(STEADY)._replace(session="before")
    assert classify(after.add(times(0.5))._replace(session="after"), base)[0] == FASTER
    assert classify(after.add(times(0.5), others=0.9)._replace(session="after"), base)[0] == UNCLEAR
    assert classify(copied.add(times(0.5))._replace(session="read once more"), base)[0] == UNCLEAR
    first, second = (before.add(times(gpu + 1), NAIVE, backend="cuda", gpu=gpu) for gpu in (0, 1))
    assert classify(second, first)[0] == SLOWER, "another GPU"


@pytest.mark.parametrize("later", [0.5, 1.0, 1.5])
def test_the_speedup_lies_in_its_interval(later: float) -> None:
    """The total is the median of all repetitions, but a recording has only the first hundred."""
    session = Session()
    base, run = session.add(STEADY, SERIAL), session.add(times(0.4))
    assert run.run.done is not None
    run = run._replace(run=replace(run.run, done=replace(run.run.done, median=0.4 * later, count=1000)))
    found = compare(run, base)
    assert found.interval is not None and found.speedup is not None
    assert found.interval[0] <= found.speedup <= found.interval[1]
    assert found.total.change == pytest.approx(1 / found.speedup - 1)
    assert speedup(run.run, base.run) == pytest.approx(found.speedup), "the same figure in every table"


def test_phases_are_matched_by_key_runs_across_sessions_and_what_else_differs_is_named() -> None:
    session = Session()
    base = session.add(STEADY, phases={"pivot": 0.2, "rest": 0.8})
    found = compare(session.add(times(0.5), phases={"rest": 0.4, "all": 0.1}), base)
    told = [(d.key, d.baseline, d.seconds, d.change) for d in found.phases]
    assert told == [("pivot", 0.2, None, None), ("rest", 0.8, 0.4, pytest.approx(-0.5)), ("all", None, 0.1, None)]
    base = session.add(STEADY, ALL_CORES)
    other = session.add(STEADY, settle(Experiment(kernel="tiled-cpu", n=256, tile=32, repeats=9, options={"vector": 0})))
    assert compare(other, base).differs == ("tile 32 against 16", "vector 0 against 1")
    one, other = Session(), Session()
    base = [one.add(STEADY), one.add(STEADY, SERIAL)]
    ours = [other.add(times(2)), other.add(times(3)), other.add(STEADY, settle(Experiment(kernel="serial", n=64)))]
    assert [(e.run.id, b.run.id) for e, b in pairs(ours, base)] == [(2, 1)]
