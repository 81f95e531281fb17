"""Differences between runs: the interval against textbook values, the verdicts, and what they refuse to say."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from scipy.stats import mannwhitneyu

from fwtui.__main__ import main
from fwtui.analysis.compare import FASTER, SAME, SLOWER, UNCLEAR, Entrant, compare, judge, pairs
from fwtui.common.ratio_interval import _rank, ratio
from fwtui.experiment.experiment import Experiment, changed, identity, settle
from fwtui.stream import events
from fwtui.stream.model import Model

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "sessions" / "h200-n4096-naive-blocked.fwt.jsonl"
STEADY = (1.000, 1.001, 0.999, 1.002, 0.998, 1.0005)


class Session:
    """A model of made-up runs."""

    def __init__(self) -> None:
        self.model = Model()

    def add(
        self,
        seconds: Sequence[float],
        experiment: Experiment | None = None,
        verdict: str = "verified",
        outcome: str = "done",
        backend: str = "cpu",
        phases: dict[str, float] | None = None,
        throttle: int = 0,
    ) -> Entrant:
        number = len(self.model.runs) + 1
        wanted = experiment or settle(Experiment(kernel="tiled-cpu", n=256))
        t = float(100 * number)
        names = tuple(events.PhaseName(key, key.title()) for key in phases or {})
        told: list[events.Event] = [
            events.RunStarted(t=t, run=number, experiment=wanted, title=wanted.kernel, backend=backend, phases=names)
        ]
        for s in seconds:
            told.append(events.Sample(t=t + s, run=number, seconds=s, since=t))
            told.append(events.Telemetry(t=t + s / 2, throttle=throttle))
            t += s
        if phases:
            parts = tuple(events.Part(phase=k, seconds=v, launches=1, relaxations=1, device_bytes=1) for k, v in phases.items())
            told.append(events.Phases(t=t, run=number, seconds=sum(phases.values()), parts=parts))
        told.append(events.Verdict(t=t, run=number, verdict=verdict, how="made up"))
        middle = sorted(seconds)[len(seconds) // 2] if seconds else None
        told.append(events.RunDone(t=t, run=number, outcome=outcome, median=middle, count=len(seconds)))
        for event in sorted(told, key=lambda e: e.t):
            self.model.apply(event)
        return Entrant(self.model, self.model.runs[number])


def times(factor: float) -> tuple[float, ...]:
    return tuple(factor * s for s in STEADY)


@pytest.mark.parametrize(
    ("few", "many", "rank"),  # one more than the two-sided 5 % critical value of U in the usual tables
    [(4, 4, 1), (5, 5, 3), (3, 5, 1), (6, 6, 6), (8, 8, 14), (10, 10, 24), (5, 12, 12), (20, 20, 128), (3, 4, 0), (2, 7, 0)],
)
def test_the_interval_is_as_wide_as_tables_of_mann_and_whitney_say(few: int, many: int, rank: int) -> None:
    assert _rank(few, many) == rank


def test_the_approximation_for_many_passes_agrees_with_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    approximate = _rank(31, 31)
    monkeypatch.setattr("fwtui.common.ratio_interval._EXACT_UP_TO", 100)
    assert abs(_rank.__wrapped__(31, 31) - approximate) <= 2


def test_the_interval_holds_one_just_where_the_test_does_not_reject() -> None:
    random.seed(3)
    for shift in (1.0, 1.02, 1.05, 1.1):
        ours = tuple(shift * random.gauss(1, 0.03) for _ in range(9))
        theirs = tuple(random.gauss(1, 0.03) for _ in range(8))
        found = ratio(ours, theirs)
        assert found is not None and found.low <= found.estimate <= found.high
        rejected = mannwhitneyu(ours, theirs, method="exact").pvalue <= 0.05
        assert (not found.low <= 1 <= found.high) == rejected


def test_the_interval_is_the_same_the_other_way_round() -> None:
    one, other = ratio(times(1.3), STEADY), ratio(STEADY, times(1.3))
    assert one is not None and other is not None
    assert one.low == pytest.approx(1 / other.high) and one.estimate == pytest.approx(1 / other.estimate)


def test_made_up_times_are_survived() -> None:
    for odd in itertools.product((0.0, 1e9, 1e-300, math.inf), repeat=4):
        found = ratio(odd, STEADY)
        assert found is None or all(map(math.isfinite, found))
    assert ratio((), ()) is None


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, FASTER), (0.97, FASTER), (1.0, SAME), (1.004, SAME), (1.03, SLOWER)])
def test_verdicts(factor: float, verdict: str) -> None:
    session = Session()
    base = session.add(STEADY, settle(Experiment(kernel="serial", n=256)))
    found = compare(session.add(times(factor)), base)
    assert found.verdict == verdict and found.speedup == pytest.approx(1 / factor)
    assert found.ratio is not None and found.ratio.low <= factor <= found.ratio.high


def test_an_interval_across_what_matters_is_unclear() -> None:
    session = Session()
    base = session.add([1.0, 1.2, 0.8, 1.1, 0.9, 1.15], settle(Experiment(kernel="serial", n=256)))
    verdict, why, _ = judge(session.add([1.05, 1.25, 0.85, 1.0, 0.95, 1.1]), base)
    assert verdict == UNCLEAR and "more passes" in why


def test_passes_that_a_recording_left_out_are_not_said_to_have_been_too_few() -> None:
    session = Session()
    whole = session.add(STEADY, settle(Experiment(kernel="serial", n=256)))
    other = session.add(times(0.5))
    slim = other._replace(run=replace(other.run, samples=()))
    for run, base in ((slim, whole), (whole, slim)):
        verdict, why, interval = judge(run, base)
        assert (verdict, interval) == (UNCLEAR, None)
        assert f"this recording keeps 0 of the {len(STEADY)} passes of run {other.run.id}" in why


@pytest.mark.parametrize(("passes", "words"), [(1, "1 pass of a run is too few"), (3, "3 passes of a run are too few")])
def test_too_few_passes_are_unclear_however_far_apart(passes: int, words: str) -> None:
    session = Session()
    base = session.add([1.0] * passes, settle(Experiment(kernel="serial", n=256)))
    verdict, why, interval = judge(session.add([0.1] * passes), base)
    assert (verdict, interval) == (UNCLEAR, None) and why.startswith(words)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"verdict": "unverified"}, "is unverified, so its time counts for nothing"),
        ({"verdict": "wrong"}, "is wrong"),
        ({"outcome": "cancelled"}, "was cancelled"),
        ({"backend": "simulator"}, "nothing simulated is timed"),
        ({"experiment": settle(Experiment(kernel="tiled-cpu", n=128))}, "n = 128 is not the same work as n = 256"),
    ],
)
def test_a_run_that_proves_nothing_wins_nothing(more: dict, words: str) -> None:
    session = Session()
    good, bad = session.add(STEADY), session.add(times(0.5), **more)
    for pair in ((bad, good), (good, bad)):
        found = compare(*pair)
        assert found.verdict == UNCLEAR and found.ratio is None and found.speedup is None
    assert words in compare(bad, good).why


def test_a_throttled_run_is_no_loser() -> None:
    session = Session()
    cuda = settle(Experiment(kernel="naive", n=256))
    good = session.add(STEADY, cuda, backend="cuda")
    slow = session.add(times(2), changed(cuda, dtype="int32"), backend="cuda", throttle=0x8)
    verdict, why, interval = judge(slow, good)
    assert verdict == UNCLEAR and interval is not None and "run 2 was throttled" in why


def test_a_difference_within_that_of_repetitions_is_unclear() -> None:
    session = Session()
    base = session.add(STEADY)
    session.add(times(1.1))
    other = session.add(times(1.06), settle(Experiment(kernel="serial", n=256)))
    assert judge(other, base)[0] == UNCLEAR and "differ by 10" in judge(other, base)[1]
    far = session.add(times(1.5), settle(Experiment(kernel="serial", n=256, seed=8)))
    assert judge(far, base)[0] == SLOWER


def test_phases_are_matched_by_key_and_missing_ones_are_said() -> None:
    session = Session()
    base = session.add(STEADY, phases={"pivot": 0.2, "rest": 0.8})
    found = compare(session.add(times(0.5), phases={"rest": 0.4, "all": 0.1}), base)
    assert [(d.key, d.baseline, d.seconds) for d in found.phases] == [
        ("pivot", 0.2, None),
        ("rest", 0.8, 0.4),
        ("all", None, 0.1),
    ]
    assert [d.change for d in found.phases] == [None, pytest.approx(-0.5), None]


def test_what_else_differs_is_named() -> None:
    session = Session()
    base = session.add(STEADY, settle(Experiment(kernel="tiled-cpu", n=256, tile=16)))
    other = session.add(STEADY, settle(Experiment(kernel="tiled-cpu", n=256, tile=32, repeats=9, options={"vector": 0})))
    assert compare(other, base).differs == ("tile 32 against 16", "vector 0 against 1")


def test_runs_that_repeat_each_other_are_paired_across_sessions() -> None:
    one, other = Session(), Session()
    base = [one.add(STEADY), one.add(STEADY, settle(Experiment(kernel="serial", n=256)))]
    ours = [other.add(times(2)), other.add(times(3)), other.add(STEADY, settle(Experiment(kernel="serial", n=64)))]
    assert [(e.run.id, b.run.id) for e, b in pairs(ours, base)] == [(2, 1)]


def test_identity_leaves_out_how_it_was_measured_only() -> None:
    plain = settle(Experiment(kernel="tiled-cpu", n=256))
    assert identity(plain) == identity(changed(plain, repeats=3, budget=1.0, verify="off", device="0"))
    assert identity(plain) != identity(changed(plain, seed=8)) and hash(identity(plain))
    named = changed(plain, file="/tmp/roads.gr")
    assert identity(named) == identity(changed(plain, file="roads.gr"))
    assert named.graph == changed(named, seed=8, n=300).graph
    seedless = identity(plain, ignoring=("seed",))
    assert seedless == identity(changed(plain, seed=8), ("seed",)) != identity(changed(plain, repeats=3), ("seed",))


def test_the_command_compares_recorded_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", f"{RECORDED}:3", f"{RECORDED}:4", f"{RECORDED}:8", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["run"], r["baseline"], r["verdict"]) for r in told] == [(4, 3, FASTER), (8, 3, FASTER)]
    assert told[1]["speedup"] == pytest.approx(0.2553765 / 0.0314466, rel=1e-4)
    assert told[1]["interval"][0] < told[1]["speedup"] < told[1]["interval"][1]
    assert main(["compare", str(RECORDED)]) == 0
    shown = capsys.readouterr().out
    assert "8.12x" in shown and shown.count("FASTER") == 3 and shown.count("baseline") == 1


def test_the_command_pairs_two_sessions_and_can_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(RECORDED), str(RECORDED), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {r["verdict"] for r in told} == {SAME} and len(told) == 4
    assert main(["compare", f"{RECORDED}:8", f"{RECORDED}:3", "--fail-slower"]) == 1
    assert main(["compare", f"{RECORDED}:3", f"{RECORDED}:8", "--fail-slower"]) == 0


@pytest.mark.parametrize("words", [[f"{RECORDED}:3"], [f"{RECORDED}:99", f"{RECORDED}:3"], ["nothing-of-that-name", "x"]])
def test_the_command_says_what_cannot_be_compared(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *words]) == 2
    assert capsys.readouterr().err.startswith("fwtui: ")
