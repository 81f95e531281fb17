"""The five documents answered from the sessions that are shipped: all that could be answered is, and every no has a cause."""

from functools import cache
from pathlib import Path

import pytest

from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.campaign import held
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNKNOWN, UNTESTABLE, ClaimAnswer
from fwtui.sessions.library import load_model

SESSIONS = Path(__file__).parents[3] / "sessions"
UNANSWERED = {"SF11"}  # it takes a second GPU


@cache
def answers(name: str) -> dict[str, ClaimAnswer]:
    model, complete = load_model(SESSIONS / f"h200-reproduce-{name}.fwt.jsonl.gz")
    assert complete
    return {claim.id: claim.answer(held(model, name)) for claim in presets()[name].claims}


@pytest.mark.parametrize("name", presets())
def test_what_was_run_is_found_and_every_refuted_claim_has_a_cause(name: str) -> None:
    for claim, answer in answers(name).items():
        assert "was not run" not in answer.reason and "no option" not in answer.reason, claim
        assert (answer.verdict == UNTESTABLE) == (claim in UNANSWERED), (claim, answer)
        assert answer.verdict != REFUTED or (answer.reason and UNKNOWN not in answer.reason), "it has a cause"


@pytest.mark.parametrize(
    ("name", "claim", "words"),
    [
        ("lund-smith", "LS6", "its threads wait for their loads"),
        ("cs542200", "CS2", "8.25 at 8, 4.62 at 16, 5.11 at 32 integer instructions a relaxation"),
        ("henriod", "HE5", "only 16 of 64 threads are left"),
    ],
)
def test_the_cause_is_what_the_session_holds(name: str, claim: str, words: str) -> None:
    answer = answers(name)[claim]
    assert answer.verdict == REFUTED and words in answer.reason, answer


def test_what_was_counted_and_timed_is_told() -> None:
    of_registers, limiter, accesses = answers("henriod")["HE6"], answers("lund-smith")["LS7"], answers("lund-smith")["LS11"]
    assert of_registers.verdict == HOLDS and "1.12x with 4, 1.57x with 16" in of_registers.value
    assert "counters: compute 96.6 %, DRAM 11.9 %" in limiter.value and "20.9 instructions there and 14.5 here" in limiter.reason
    assert accesses.value.startswith("natural 1.02-way, cyclic 1.01-way, row-major 1.33x the sectors per load")
    assert not limiter.note and not accesses.note
    assert answers("sing")["SF8"].value.startswith("time over device memory's: 1.91x")
