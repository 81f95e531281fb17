"""The claims of five papers: their answers in the shipped recordings, and what decides a claim in made-up sessions."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from made_sessions import CLAIMS, GPU, Made, ask, int16, int32
from msgspec.structs import replace

from fwtui.campaigns.claims import _FIELD, _FUNCTIONS, HOLDS, REFUTED, UNTESTABLE, Answer, Claim, evaluate, evidence_of, papers
from fwtui.campaigns.evidence import Evidence, Missing, experiment, near
from fwtui.live.counters import METRICS
from fwtui.sessions.library import load_model
from fwtui.stream import events
from fwtui.stream.model import Model

SESSIONS = Path(__file__).parents[3] / "sessions"
RECORDED = {  # h: holds, r: refuted, -: not testable here
    "lund-smith": "rhrhh rrhhh rhr",
    "henriod": "hrrhr hh",
    "sing": "hrrhh hhhrr -",
    "cs542200": "hrrhr hh",
    "catinello": "hrrrh rhhhh",
}
VERDICTS = {"h": HOLDS, "r": REFUTED, "-": UNTESTABLE}


@cache
def answers(name: str) -> dict[str, Answer]:
    model, complete = load_model(SESSIONS / f"h200-reproduce-{name}.fwt.jsonl.gz")
    assert complete
    return {claim.id: evaluate(claim, evidence_of(model, papers()[name])) for claim in papers()[name].claim}


@pytest.mark.parametrize("name", RECORDED)
def test_the_shipped_recordings_answer_every_claim(name: str) -> None:
    letters = RECORDED[name].replace(" ", "")
    assert [answer.verdict for answer in answers(name).values()] == [VERDICTS[letter] for letter in letters]
    for claim, answer in answers(name).items():
        assert answer.verdict != REFUTED or (answer.reason and "reason is unknown" not in answer.reason), claim


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("LS1", "2.83x (n 8192), 2.91x (n 16384)"),
        ("LS7", "2.31 Trelax/s, 29 FLOPs' worth, bus 23.9 %, counters: compute 96.6 %, DRAM 11.9 % (n 8192)"),
        ("HE4", "A11* -> A12 -> A21 -> A22 -> A22*"),
        ("CA3", "48.1 % of 4.81 TB/s (n 16384), hits L1 65.1 %, L2 53.5 %"),
        ("CA9", "1.39x the sectors, plain rows take 0.98x the time (n 4099)"),
    ],
)
def test_the_value_is_computed_from_the_recording(claim: str, value: str) -> None:
    assert answers(CLAIMS[claim][1].name)[claim].value == value


def formulas(claim: Claim) -> Iterator[str]:
    several = [(one,) if isinstance(one, str) else one for one in (*claim.let.values(), claim.here)]
    yield from (formula for one in several[:-1] for formula in one)
    yield from (claim.holds, *(condition for condition, _ in claim.because))
    templates = (*several[-1], claim.reason, claim.note, *(text for _, text in claim.because))
    yield from (field[1] for text in templates for field in _FIELD.finditer(text))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_formula_has_functions_and_names_that_exist(claim: str) -> None:
    known = {*dir(builtins), *_FUNCTIONS, *dir(Evidence), "model", "others", "this", *CLAIMS[claim][0].let}
    for formula in formulas(CLAIMS[claim][0]):
        tree = [*ast.walk(ast.parse(formula, mode="eval"))]
        bound = {node.id for node in tree if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {node.arg for node in tree if isinstance(node, ast.arg)}
        assert {node.id for node in tree if isinstance(node, ast.Name)} <= known | bound, formula
        calls = [node for node in tree if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counter"]
        names = {one.value for call in calls for one in call.args[2:] if isinstance(one, ast.Constant)}
        assert names <= {metric.key for metric in METRICS}, formula


@pytest.mark.parametrize("claim", sorted({*CLAIMS} - {"HE4"}))
def test_an_empty_session_answers_nothing_and_gives_the_reason(claim: str) -> None:
    answer = Made().answer(claim)
    assert answer.verdict == UNTESTABLE and answer.reason and answer.value == "-"


# the slower and the faster run of a claim about two kernels, and the ratios of their times that confirm and refute it
PAIRS: dict[str, tuple[Any, Any, float, float]] = {
    "LS1": (ask("katz-kider", 8192), ask("staged-load", 8192), 4.0, 3.0),
    "LS3": (ask("optimized", 8192), ask("staged-load", 8192), 2.4, 1.1),
    "LS5": (ask("serial", 2048), ask("staged-load", 4096), 20.0, 18.0),
    "LS9": (ask("optimized", 8192), ask("register-tile", 8192), 1.05, 1.3),
    "LS13": (ask("staged-load", 8192), ask("look-ahead", 8192), 1.4, 3.0),
    "SF6": (int32("scipy", 512), int32("serial", 512), 2.0, 0.5),
    "SF7": (int32("serial", 2048), int32("naive", 2048), 100.0, 200.0),
    "CS5": (int32("blocked-branch", 4096), int32("katz-kider", 4096), 1.2, 1.0),
    "CA7": (int16("katz-kider", 8192), int16("one-cooperative", 8192, launch="eager"), 1.0, 1.2),
    "CA9": (int16("naive", 4099, pitch=0), int16("naive", 4099, pitch=1), 1.2, 1.0),
}
RATE = 2 * 128 * 132 * 1980e6 / 2048**3  # FLOP/s of the GPU, by the relaxations of n = 2048
# the run of a claim about one, its seconds and facts that confirm and refute it
SINGLE: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "LS7": (ask("katz-kider", 2048), {"seconds": 60 / RATE}, {"seconds": 120 / RATE}),
    "LS10": (ask("staged-load", 2048), {"shared": 1024}, {"shared": 4096}),
    "HE3": (ask("kleene-base", 256, results=4), {"verdict": "wrong"}, {}),
    "SF3": (int32("naive", 64), {"seconds": 0.01, "copies": 1.0}, {"seconds": 0.5, "copies": 1.0}),
    "CA3": (int16("naive", 2048), {"device_bytes": int(5e12)}, {"device_bytes": int(4e12)}),
    "CA8": (int16("blocked-vector", 59392), {}, {"verdict": "wrong"}),
    "CA10": (int16("serial", 100), {"edges": 2950}, {"edges": 6950}),
}


def pair(claim: str, ratio: float, **more: Any) -> Made:
    slow, fast, *_ = PAIRS[claim]
    return Made().add(slow, ratio, **more).add(fast, 1.0, **more)


@pytest.mark.parametrize("claim", [*PAIRS, *SINGLE])
def test_a_claim_holds_where_its_numbers_do_and_is_refuted_where_not(claim: str) -> None:
    if claim in PAIRS:
        cases = [pair(claim, ratio) for ratio in PAIRS[claim][2:]]
    else:
        wanted, *facts = SINGLE[claim]
        cases = [Made().add(wanted, **these) for these in facts]
    for made, verdict in zip(cases, (HOLDS, REFUTED), strict=True):
        answer = made.answer(claim)
        assert answer.verdict == verdict and answer.value not in ("", "-"), answer


def crossing(*wins: int, sizes: tuple[int, ...] = (16, 58, 73, 91, 115, 512)) -> Made:
    """Return a session in which the GPU wins at these sizes, copies included."""
    made = Made()
    for n in sizes:
        made.add(int32("serial", n), 1.0).add(int32("naive", n), 0.1, copies=0.1 if n in wins else 2.0)
    return made


def tiles(*seconds: float, wrong: int = 0) -> Made:
    made = Made()
    for tile, took in zip((2, 4, 8, 16, 32), seconds, strict=False):
        made.add(int32("katz-kider", 2048, tile=tile), took, verdict="wrong" if tile == wrong else "verified")
    return made


SWEEPS: tuple[tuple[str, Made, str], ...] = (
    ("SF1", crossing(91, 115, 512), HOLDS),
    ("SF1", crossing(512, sizes=(16, 91, 512)), UNTESTABLE),
    ("CS2", tiles(9, 5, 0.44, 0.37, 0.28), HOLDS),
    ("CS2", tiles(9, 5, 0.28, 0.37, 0.44), REFUTED),
    ("CS3", tiles(9, 5, 3, 2, 1, wrong=8), HOLDS),
    ("CS3", tiles(9, 5, 3, 2, 1), REFUTED),
    ("CS3", tiles(9, 5, 3), UNTESTABLE),
    ("HE3", Made().add(ask("kleene-base", 256, tile=4, results=4)), UNTESTABLE),
)


@pytest.mark.parametrize(("claim", "made", "verdict"), SWEEPS, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(SWEEPS)])
def test_a_claim_about_several_runs(claim: str, made: Made, verdict: str) -> None:
    assert made.answer(claim).verdict == verdict, made.answer(claim)


def test_two_gpus_are_compared_between_two_sessions() -> None:
    def session(name: str, cc: tuple[int, int], multiprocessors: int, small: float, large: float) -> Made:
        gpu = replace(GPU, name=name, compute_capability=cc, multiprocessors=multiprocessors)
        return Made(gpu).add(int32("naive", 64), small).add(int32("naive", 2048), large)

    new = session("2070 SUPER", (7, 5), 40, 1.0, 1.0)
    for small, large, count, verdict in ((0.8, 1.5, 80, HOLDS), (1.5, 0.8, 80, REFUTED), (0.8, 1.5, 2, UNTESTABLE)):
        old = session("Titan X", (6, 1), count, small, large)
        assert new.answer("SF11", old.model).verdict == old.answer("SF11", new.model).verdict == verdict


def test_noise_wrong_results_and_crashes_decide_nothing_and_are_named() -> None:
    assert "too noisy" in pair("CS5", 1.2, spread=0.06).answer("CS5").reason
    assert pair("CS5", 1.07, spread=0.01).answer("CS5").verdict == HOLDS
    assert pair("CS5", 1.07, spread=0.045).answer("CS5").verdict == REFUTED
    slow, fast, *_ = PAIRS["CS5"]
    cases: tuple[dict[str, Any], ...] = ({"verdict": "wrong"}, {"outcome": "failed", "message": "the GPU burnt"})
    for bad in cases:
        answer = Made().add(slow, 2.0).add(fast, 1.0).add(fast, 1.0, **bad).answer("CS5")
        assert answer.verdict == (UNTESTABLE if "verdict" in bad else HOLDS)
        assert "INCORRECT: so it is" in answer.reason if "verdict" in bad else not answer.reason
    assert "the GPU burnt" in Made().add(slow, 2.0).add(fast, 1.0, **cases[1]).answer("CS5").reason
    made = pair("CS5", 1.2)
    made.model.apply(events.Sample(t=5.0, run=2, seconds=1.0, since=3.0))
    made.model.apply(events.Telemetry(t=4.0, throttle=0x20))
    assert "katz-kider at n = 4096 was throttled (thermal)" in made.answer("CS5").note
    assert "throttled" not in made.answer("CS4").note, "another claim's runs"


def test_a_run_is_found_by_all_its_choices_and_extrapolated_times_say_so() -> None:
    assert experiment("katz-kider tile=8 threads=64 density=0.5", 64, "int32") == int32(
        "katz-kider", 64, tile=8, threads=64, density=0.5
    )
    made = Made().add(ask("katz-kider", 64, tile=8, threads=64)).add(ask("katz-kider", 64), 2.0).add(ask("serial", 512), 1.0)
    found = Evidence(made.model, "float32")
    assert (found.time("katz-kider tile=8 threads=64", 64), found.time("katz-kider", 64)) == (1.0, 2.0)
    for spec in ("katz-kider tile=16", "katz-kider memory=pinned", "katz-kider file=a.gr", "katz-kider no_such=1", "absent"):
        with pytest.raises(Missing):
            found.run(spec, 64)
    assert (found.time("serial", 1024), str(found.time("serial", 1024))) == (8.0, "8.00 s *extrapolated* from n = 512")
    assert near(1.0, 1.5) and not near(1.51, 1.0) and near(4.5, 2.0, 3.0) and not near(4.6, 2.0, 3.0)


def test_only_the_runs_of_the_last_reproduction_count() -> None:
    model: Model = Made().add(int32("naive", 512)).model
    for t, text in ((1.5, "reproduce sing --quick"), (2.5, "end of reproduce sing"), (3.0, "reproduce catinello")):
        model.apply(events.Marker(t=t, text=text))
    assert [len(evidence_of(model, papers()[name]).runs()) for name in ("sing", "catinello", "henriod")] == [0, 0, 1]
