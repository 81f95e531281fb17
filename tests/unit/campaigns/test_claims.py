"""Every claim of the documents can hold and can be refuted: its judge on sessions made by hand."""

import pytest
from claim_sessions import HOLDING_AND_REFUTING, blocks, conflicts_counted, even, files, five, managed, pair
from made_sessions import CLAIMS, Made, int16, int32

from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNTESTABLE
from fwtui.campaigns.reproduce.results import ask
from fwtui.stream import events


@pytest.mark.parametrize("claim", HOLDING_AND_REFUTING)
def test_a_claim_holds_where_its_numbers_do_and_is_refuted_where_not(claim: str) -> None:
    for made, verdict in zip(HOLDING_AND_REFUTING[claim], (HOLDS, REFUTED), strict=True):
        answer = CLAIMS[claim].answer(made.results)
        assert answer.verdict == verdict and answer.value not in ("", "-"), answer


def large_naive(share: float, dram: float | None = None, n: int = 8192, compute: float = 0.3) -> Made:
    """The naive kernel with the model's share of the memory's peak, and the chips' share where that was counted."""
    counters = {"dram_share": dram, "compute_share": compute} if dram is not None else None
    return Made().add(ask("naive", n), n**3 * 16 / 4.8e12 / share, counters=counters, op="relax")


def tiles_right(*tiles: int, wrong: int = 0, left_out: str = "") -> Made:
    made = Made()
    for tile in tiles:
        made.add(int32("katz-kider", 2048, tile=tile), verdict="wrong" if tile == wrong else "verified")
    if left_out:
        made.model.apply(events.Marker(t=1.0, text=left_out))
    return made


def largest(kernel: str, outcome: str = "done", message: str = "") -> Made:
    made = Made().add(int16("blocked-vector", 8192), 1.0).add(int16("staged-load", 8192), 0.5)
    return made.add(int16(kernel, 59392), 500.0, outcome=outcome, message=message)


SLOW = "left out: katz-kider n 2048 int32 tile 2: expected to take 75 s, more than 60 s a pass"
SHORT = "left out: katz-kider n 2048 int32 tile 2: expected to take 9 s, and 3 of 47 s are left"
LATE = Made().add(ask("staged-load", 8192), 5.0).add(ask("kleene", 8192), 1.0)
LATE.add(ask("staged-load", 16384), 40.0).add(ask("naive", 16384), 80.0)
ELSEWHERE: tuple[tuple[str, Made, str], ...] = (
    ("LS13", LATE, REFUTED),
    ("LS6", large_naive(0.92), HOLDS),
    ("LS6", large_naive(0.2), REFUTED),
    ("LS6", large_naive(1.1), REFUTED),
    ("LS6", large_naive(1.1, dram=0.7), HOLDS),
    ("LS6", large_naive(0.54, dram=0.1), REFUTED),
    ("LS6", large_naive(0.9, dram=0.44, compute=0.52), REFUTED),
    ("LS6", large_naive(0.54, n=2048), UNTESTABLE),
    ("LS10", Made().add(ask("staged-load", 2048, dtype="int16"), shared=512).add(ask("staged-load", 2048), shared=1024), HOLDS),
    ("LS11", conflicts_counted(3.0), REFUTED),
    ("LS11", conflicts_counted(7.5e5, cyclic=7.5e5), REFUTED),
    ("LS11", conflicts_counted(7.5e5, row_major=1.0), REFUTED),
    ("HE3", Made().add(ask("kleene-base", 256, tile=4, results=4)), UNTESTABLE),
    ("HE3", Made().add(ask("kleene-base", 256, tile=4, results=4), verdict="wrong"), REFUTED),
    ("SF1", even(int32, 16, (16, 512)), REFUTED),
    ("SF1", even(int32, 16, (90, 512)), UNTESTABLE),
    ("SF1", even(int32, 100, (16, 512)), UNTESTABLE),
    ("SF1", even(int32, 16, (512,)), UNTESTABLE),
    ("SF1", even(int32, 600, (16, 80)), UNTESTABLE),
    ("SF1", even(int32, 600, (16, 300)), REFUTED),
    ("SF1", even(int32, 400, (16, 300, 512)), REFUTED),
    ("SF3", Made().add(int32("naive", 16), 0.01, copies=1.0), UNTESTABLE),
    ("SF8", managed(0.3, 0.5, 1.0), REFUTED),
    ("SF8", managed(1.0), UNTESTABLE),
    ("SF10", pair(int32("naive", 2048), int32("two-matrices", 2048), 1.2), REFUTED),
    ("CS3", tiles_right(16), UNTESTABLE),
    ("CS3", tiles_right(2, 4, 8, 16, 32, wrong=32), UNTESTABLE),
    ("CS3", tiles_right(4, 8, 16, 32, left_out=SHORT), UNTESTABLE),
    ("CS3", tiles_right(4, 8, 16, 32, left_out=SLOW), HOLDS),
    ("CS6", Made().add(int32("katz-kider", 256, file="a.gr"), copies=1.0, stages={"read": 1.0}), UNTESTABLE),
    ("CS6", files(1.04), REFUTED),
    ("CA1", even(int32, 100, (16, 512)), UNTESTABLE),
    ("CA2", five(1.98, 1128.0), REFUTED),
    ("CA5", blocks(256, many=1.0), REFUTED),
    ("CA8", largest("blocked-vector"), HOLDS),
    ("CA8", largest("blocked-vector", outcome="refused", message="it does not fit"), UNTESTABLE),
)


@pytest.mark.parametrize(("claim", "made", "verdict"), ELSEWHERE, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(ELSEWHERE)])
def test_what_decides_a_claim(claim: str, made: Made, verdict: str) -> None:
    results = made.results
    if claim == "LS6":
        made.model.apply(events.Device(t=0.0, l2_bytes=50 * 2**20))
    answer = CLAIMS[claim].answer(results)
    assert answer.verdict == verdict, answer


NOISY = (
    *("LS1", "LS9", "LS13", "HE1", "HE2", "SF5", "SF6", "SF10", "CS2"),
    *("CS4", "CS5", "CS7", "CA2", "CA4", "CA5", "CA6", "CA7", "CA9"),
)


@pytest.mark.parametrize("claim", NOISY)
def test_noisy_passes_decide_nothing(claim: str) -> None:
    made = HOLDING_AND_REFUTING[claim][0]
    shaken = Made()
    for run in made.model.runs.values():
        shaken.add(run.experiment, run.seconds, spread=0.06)
    answer = CLAIMS[claim].answer(shaken.results)
    assert answer.verdict == UNTESTABLE and "too noisy" in answer.reason, answer


def test_spreads_copies_and_throttling_count() -> None:
    slow, fast = int32("blocked-branch", 4096), int32("katz-kider", 4096)
    assert CLAIMS["CS5"].answer(pair(slow, fast, 1.07, spread=0.01).results).verdict == HOLDS
    assert CLAIMS["CS5"].answer(pair(slow, fast, 1.07, spread=0.045).results).verdict == REFUTED
    made = large_naive(0.3)
    assert CLAIMS["LS6"].answer(made.results).verdict == REFUTED
    made.model.apply(events.Limits(t=1.0, backend="cuda", copy_bytes_per_second=4.8e12 / 2))
    answer = CLAIMS["LS6"].answer(made.results)
    assert answer.verdict == HOLDS and answer.value == "model 60.0 % of a measured copy (n 8192)"
    made = pair(int32("blocked-branch", 4096), int32("katz-kider", 4096), 1.2)
    made.model.apply(events.Sample(t=5.0, run=2, seconds=1.0, since=3.0))
    made.model.apply(events.Telemetry(t=4.0, throttle=0x20))
    assert "katz-kider at n = 4096 was throttled (thermal)" in CLAIMS["CS5"].answer(made.results).note
    assert "throttled" not in CLAIMS["CS4"].answer(made.results).note, "another claim's runs"


def test_what_is_to_be_known_is_said_whatever_the_verdict() -> None:
    for claim, words in (("CA9", "need counters"), ("LS7", "needs counters"), ("LS8", "46"), ("HE6", "multiplies")):
        for made in HOLDING_AND_REFUTING[claim]:
            answer = CLAIMS[claim].answer(made.results)
            assert words in answer.note, answer


def test_every_claim_is_judged_somewhere_in_these_tests() -> None:
    assert set(CLAIMS) == set(HOLDING_AND_REFUTING) | {"HE4", "SF11"}
    counts = {name: len(preset.claims) for name, preset in presets().items()}
    assert counts == {"lund-smith": 13, "henriod": 7, "sing": 11, "cs542200": 7, "catinello": 10}


@pytest.mark.parametrize("claim", sorted(set(CLAIMS) - {"HE4", "LS10", "LS11"}))
def test_an_empty_session_answers_nothing_and_says_why(claim: str) -> None:
    answer = CLAIMS[claim].answer(Made().results)
    assert answer.verdict == UNTESTABLE and answer.reason and answer.value == "-"


@pytest.mark.parametrize("claim", sorted(set(CLAIMS) - {"HE4"}))
def test_kernels_that_are_missing_are_named(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = HOLDING_AND_REFUTING[claim][0].results if claim in HOLDING_AND_REFUTING else Made().results
    for module in ("results", "documents.henriod", "documents.catinello"):
        monkeypatch.setattr(f"fwtui.campaigns.reproduce.{module}.registry", dict)
    answer = CLAIMS[claim].answer(results)
    if claim not in ("HE3", "CS3", "CA8", "CA10", "SF11"):  # these look at runs, whatever kernels there are
        assert answer.verdict == UNTESTABLE and ("kernel missing" in answer.reason or "was run" in answer.reason), answer
