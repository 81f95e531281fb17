"""Why a claim is refuted: a cause fits the direction in which it is, or it is said that none is known."""

import pytest
from claim_sessions import even, generated, pair
from made_sessions import CLAIMS, Made, int16, int32

from fwtui.campaigns.reproduce import evidence
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNKNOWN, UNTESTABLE
from fwtui.campaigns.reproduce.documents import catinello
from fwtui.campaigns.reproduce.results import Missing, ask
from fwtui.stream import events
from fwtui_kernels import registry


def naive_blocks(small: float, large: float, n: int = 4096) -> Made:
    """The simple kernel, with this many blocks of 64 and of 256 threads a second."""
    made = Made()
    for threads, rate in ((64, small), (256, large)):
        made.add(int16("naive", n, threads=threads), n // 32 * (n // (threads // 32)) * n / rate)
    return made


def heights(best: int) -> Made:
    made = naive_blocks(1.6e9, 1.5e9)
    simple = catinello.by_threads("naive", 256)(4096)
    for height in catinello.HEIGHTS:
        took = made.results.seconds(simple)
        made.add(int16("pseudo-blocked", 4096, results=height), took / 2 if height == best else took)
    return made


def reproduced(one: float, many: float) -> Made:
    """The blocked kernel in one launch and in many; launches of the simple kernel take 1 us."""
    made = Made().add(int16("naive", 16), 16e-6)
    return made.add(int16("katz-kider", 8192), many).add(int16("one-cooperative", 8192, launch="eager"), one)


def bases(one: float, several: float) -> Made:
    made = Made()
    for n in (256, 8192):
        made.add(ask("kleene", n, tile=16), phases={"base": one, "volkov": 1.0})
        for count in (1, 4, 16):
            made.add(ask("kleene-base", n, results=count, keep=0), 2.0, phases={"base": several, "volkov": 1.0})
    return made


KATZ, OPTIMIZED, STAGED = (ask(kernel, 8192) for kernel in ("katz-kider", "optimized", "staged-load"))
BOTH = pair(int16("two-matrix-blocked", 8192), int16("katz-kider", 8192), 1.0)
DIRECTIONS: tuple[tuple[str, Made, str], ...] = (
    ("LS1", pair(KATZ, STAGED, 2.0), UNKNOWN),
    ("LS1", pair(KATZ, STAGED, 12.0).add(OPTIMIZED, 1.5), "8.00x by optimized (LS2) and 1.50x by the staged load"),
    ("LS2", pair(KATZ, OPTIMIZED, 1.0), UNKNOWN),
    ("LS2", pair(KATZ, OPTIMIZED, 9.0), "only counters can show its cost"),
    ("LS2", Made().add(OPTIMIZED, 1.0).add(KATZ, 9.0).read(KATZ, integer=1.0, dram=0.04), "integer units 100 % busy"),
    ("LS3", pair(OPTIMIZED, STAGED, 0.9), UNKNOWN),
    ("LS3", pair(OPTIMIZED, STAGED, 0.9).add(ask("staged-natural", 8192), 0.6), "1.50x as fast as optimized (n 8192)"),
    ("LS4", pair(ask("naive", 8192), KATZ, 20.0), UNKNOWN),
    ("LS4", pair(ask("naive", 8192), KATZ, 2.0).add(OPTIMIZED, 0.1), "20.0x as fast as naive"),
    ("LS9", pair(OPTIMIZED, ask("register-tile", 8192), 0.5), UNKNOWN),
    ("LS9", pair(OPTIMIZED, ask("register-tile", 8192), 2.0), "stay in registers"),
    ("LS13", pair(STAGED, ask("kleene", 8192), 3.0), UNKNOWN),
    ("LS13", pair(STAGED, ask("look-ahead", 8192), 3.0), "were not measured separately"),
    ("CS5", pair(int32("katz-kider", 4096), int32("blocked-branch", 4096), 2.0), UNKNOWN),
    ("CS5", pair(int32("katz-kider", 4096), int32("blocked-branch", 4096), 1.0), "without a branch"),
    ("CA1", even(int16, 16, (16, 30, 400, 512)), "captured in one graph"),
    ("CA1", even(int16, 512, (16, 30, 400, 512)), UNKNOWN),
    ("CA3", naive_blocks(1.6e9, 1.5e9), "1.50 billion blocks of 256 threads a second and 1.60 billion of 64"),
    ("CA3", naive_blocks(1.6e9, 0.5e9), UNKNOWN),
    ("CA4", heights(2), "h = 1 starts"),
    ("CA4", heights(8), UNKNOWN),
    ("CA6", BOTH.read(int16("katz-kider", 8192), integer=0.97, dram=0.1), "katz-kider keeps the integer units 97.0 % busy and"),
    ("CA7", reproduced(0.01, 0.01 + 256 * 3e-6), "as much as 3 launches, which take 3.00 us"),
    ("CA7", reproduced(0.1, 0.2), "so they are not the reason"),
    ("HE2", bases(0.1, 0.2), "4 results a thread take 2.00x the time of one"),
    ("HE2", bases(0.2, 0.1), UNKNOWN),
    ("SF10", pair(int32("naive", 2048), int32("two-matrices", 2048), 2.0), UNKNOWN),
    ("SF10", pair(int32("naive", 2048), int32("two-matrices", 2048), 0.5), "two addresses"),
    ("SF9", generated(1.0, 1.0), "never draws a pair twice"),
    ("SF9", generated(3.0, 3.0), UNKNOWN),
)


@pytest.mark.parametrize(("claim", "made", "words"), DIRECTIONS, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(DIRECTIONS)])
def test_a_cause_fits_the_direction(claim: str, made: Made, words: str) -> None:
    if claim == "CA3":
        for run in list(made.model.runs.values()):
            made.add(run.experiment, run.seconds, device_bytes=1)
    answer = CLAIMS[claim].answer(made.results)
    assert answer.verdict == REFUTED and words in answer.reason and not answer.cause, answer
    assert (UNKNOWN in answer.reason) == (words == UNKNOWN)


def test_gpm_says_how_full_the_bus_is() -> None:
    naive = ask("naive", 8192)
    waits, computes = "neither is full", "arithmetic units are always busy"
    for integer, dram, verdict, words in (
        (0.3, 0.9, HOLDS, ""),
        (0.64, 0.47, REFUTED, waits),
        (0.1, 0.2, REFUTED, waits),
        (0.95, 0.2, REFUTED, computes),
    ):
        made = Made().add(naive, 8192**3 * 16 / 4.8e12 / 0.9).read(naive, integer=integer, dram=dram)
        answer = CLAIMS["LS6"].answer(made.results)
        assert answer.verdict == verdict and "by GPM (n 8192)" in answer.value and not answer.note, answer
        assert words in answer.reason


def test_a_rate_that_hardly_falls_beyond_the_cache_is_not_the_buss() -> None:
    for faster, verdict in ((1.3, REFUTED), (3.0, HOLDS)):
        made = Made().add(ask("naive", 8192), 8192**3 * 16 / 4.8e12 / 0.9)
        made.add(ask("naive", 2048), made.results.seconds(ask("naive", 8192)) / 64 / faster)
        made.model.apply(events.Device(t=0.0, l2_bytes=60 * 2**20))
        answer = CLAIMS["LS6"].answer(made.results)
        assert answer.verdict == verdict and f"{faster:.2f}x the rate" in answer.value, answer


def test_readings_and_modes_of_other_runs_are_not_this_ones() -> None:
    other, wanted = ask("katz-kider", 4096, tile=16), ask("katz-kider", 4096)
    made = Made().add(wanted).add(other).read(other, integer=1.0, dram=0.1)
    assert made.results.gpm(other) == (1.0, 0.1)
    with pytest.raises(Missing):
        made.results.gpm(wanted)
    assert not evidence.integer_bound(made.results, lambda n: ask("katz-kider", n))
    captured = pair(int16("katz-kider", 8192), int16("one-cooperative", 8192, launch="graph"), 2.0)
    assert CLAIMS["CA7"].answer(captured.results).verdict == UNTESTABLE
    small = pair(int16("katz-kider", 8192, tile=16), int16("two-matrix-blocked", 8192), 2.0)
    assert CLAIMS["CA6"].answer(small.results).verdict == UNTESTABLE
    made = Made().add(ask("look-ahead", 4096)).add(ask("look-ahead", 8192)).add(ask("naive", 64))
    usual = registry()["look-ahead"].tile_for
    assert [run.experiment.tile for run in made.model.runs.values()] == [usual(4096), usual(8192), 0]
    assert [run.experiment.launch for run in made.model.runs.values()] == ["graph"] * 3
