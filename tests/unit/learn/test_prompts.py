"""The prompts of the last step: what each waits for, true and false, and that what is true of the file now decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_files import SECOND
from msgspec.structs import replace

from fwtui.common.errors import Refused
from fwtui.learn.course import load_course, prompts_of
from fwtui.learn.prompts import CHECKS, Prompted, PromptEvidence, reached
from fwtui.live.watch_updates import Began, Judged, Report
from fwtui.stream.trials import Finding, OperationResources

PROMPTS = prompts_of(load_course())
NAIVE = Finding(case="n = 5", outcome="right", sentence="", n=5)
TILED = replace(NAIVE, tile=4)
ONE_PHASE = Finding(case="plan", outcome="right", sentence="", phases=("all",))
THREE = replace(ONE_PHASE, phases=("pivot", "panels", "rest"))
REST = OperationResources(
    op="closing", phase="rest", tile=32, itemsize=4, threads=1024, registers=30, shared_bytes=0, spill_bytes=0, blocks=2,
    warps=64, max_warps=64,
)  # fmt: skip
SHARED = replace(REST, shared_bytes=3 * 4096)
OWN = replace(SHARED, threads=256, shared_bytes=2 * 4096)
STEPS = (
    PromptEvidence([ONE_PHASE, NAIVE]),
    PromptEvidence([ONE_PHASE, TILED]),
    PromptEvidence([THREE, TILED], [REST]),
    PromptEvidence([THREE, TILED], [SHARED]),
    PromptEvidence([THREE, TILED], [OWN]),
)


def test_each_prompt_is_done_by_its_change_and_not_before() -> None:
    assert [prompt.until for prompt in PROMPTS] == list(CHECKS) and len(PROMPTS) == len(STEPS) == 5
    for done, known in enumerate(STEPS, 1):
        assert [CHECKS[prompt.until].holds(known) for prompt in PROMPTS] == [place < done for place in range(5)]
        assert reached(PROMPTS, known, True) == (done + 1, True, False)
        assert reached(PROMPTS, known, False) == (done, False, False), "what is not right stays at what it is about"


@pytest.mark.parametrize(
    ("until", "known"),
    [
        ("right", PromptEvidence([ONE_PHASE])),
        ("tiles", PromptEvidence([replace(TILED, n=0)])),
        ("phases", PromptEvidence([replace(THREE, outcome="wrong"), TILED])),
        ("phases", PromptEvidence([replace(THREE, phases=("pivot", "rest")), TILED])),
        ("shared", PromptEvidence([THREE, TILED], [replace(SHARED, phase="pivot")])),
        ("registers", PromptEvidence([THREE, TILED], [replace(SHARED, threads=256)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, threads=1024)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, spill_bytes=8)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, rewrites=True)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, phase="pivot")])),
    ],
)
def test_what_comes_near_does_not_do(until: str, known: PromptEvidence) -> None:
    assert not CHECKS[until].holds(known)


def test_the_loop_moves_the_prompts_both_ways() -> None:
    prompted = Prompted(PROMPTS)
    assert prompted.head == "prompt 1 of 5" and "Save the file" in prompted.text

    def saved(known: PromptEvidence, right: bool = True) -> str:
        prompted.hear(Began(1))
        for finding in known.findings:
            prompted.hear(Report("case", "", finding))
        for used in known.used:
            prompted.hear(Report("compiled", "", used=used))
        prompted.hear(Judged("", right, True, None))
        return prompted.head

    assert saved(STEPS[2]) == "prompt 4 of 5"
    assert saved(PromptEvidence(), right=False) == "prompt 4 of 5", "of a file that does not load nothing is known"
    assert saved(STEPS[3], right=False) == "prompt 4 of 5" and "Not every graph comes out right yet." in prompted.text
    assert saved(STEPS[4]) == "all 5 prompts are done" and "best rung" in prompted.text
    assert saved(STEPS[0]) == "prompt 2 of 5", "a version gone back to is what it is"
    assert saved(STEPS[2]._replace(used=[])) == "prompt 4 of 5" and "No compiler" in prompted.text


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ('say = "Tile it."\nuntil = "soon"', "has a prompt until 'soon', which nothing checks"),
        ('say = "Take {tile}."\nuntil = "tiles"', "has a brace in a prompt"),
        ('say = "Take 4 of them."\nuntil = "tiles"', "has a number or a brace of its own"),
        ('until = "tiles"', "does not say what a step needs"),
    ],
)
def test_a_broken_prompt_is_refused_in_one_sentence(tmp_path: Path, prompt: str, words: str) -> None:
    (tmp_path / "01-tiles.toml").write_text(f"{SECOND}\n[[prompts]]\n{prompt}\n")
    with pytest.raises(Refused) as refusal:
        load_course(tmp_path)
    assert words in str(refusal.value) and str(refusal.value).startswith("01-tiles.toml")


def test_a_course_without_prompts_says_so() -> None:
    course = tuple(step for step in load_course() if not step.written.prompts)
    with pytest.raises(Refused, match="no step of the course has prompts"):
        prompts_of(course)
