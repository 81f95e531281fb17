"""Listings in sessions: stored once for all runs, and the same for every reader."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from builders import model_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from session_lines import HEADER, done, record, started

from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.reader import load
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.codec import Line, as_line
from fwtui.stream.listing import CodeLine, Instruction, Listing, apportion, listing_of, shares_of, text_of
from fwtui.stream.model import Model
from fwtui.stream.run import SampledCode

LINES = (
    CodeLine("mine.py", 8, "    via = a + b", {"wait": 500}),
    CodeLine("mine.py", 9, "", {}),
    CodeLine("mine.py", 10, "    best = min(best, via)", {"barrier": 299_500, "wait": 1}),
    CodeLine("help.py", 3, "def add(a, b):", {"other": 200_000}),
)
CODE = tuple(Instruction(16 * place, f"FADD R{place}", place % 3, {"barrier": 1000}) for place in range(60))
LISTING = Listing(lines=LINES, instructions=CODE, total=90, loop=(16, 320), mix={"FADD": 20}, relaxations=4)
SAMPLES = sum(line.samples for line in LINES)


def sampled(run: int, listing: Listing = LISTING) -> list[Line]:
    """Return the lines of a run with a sampled op, as the sampling process sends them."""
    reasons = {"barrier": 299_500, "other": 200_000, "wait": 501}
    warps = events.WarpSamples(t=run, run=run, op="rest", reasons=reasons, mix=listing.mix, relaxations=listing.relaxations)
    told = text_of(listing, "c0de"), shares_of(listing, "c0de", run, "rest", SAMPLES)
    return [started(run, run), done(run, run), as_line(warps), *(as_line(replace(event, t=float(run))) for event in told)]


def model(lines: list[Line]) -> Model:
    return model_of(line.event for line in lines)


def test_a_listing_comes_back_with_all_its_samples_and_nearly_each_at_its_place() -> None:
    told = model(sampled(1)).runs[1].listing("rest")
    assert told is not None and replace(told, lines=(), instructions=()) == replace(LISTING, lines=(), instructions=())
    assert [(one.file, one.line, one.text) for one in told.lines] == [(one.file, one.line, one.text) for one in LINES]
    assert sum(one.samples for one in told.lines) == SAMPLES
    assert all(abs(a.samples - b.samples) <= SAMPLES / 10_000 for a, b in zip(told.lines, LINES, strict=True))
    assert [(one.offset, one.text, one.line) for one in told.instructions] == [(a.offset, a.text, a.line) for a in CODE]
    assert all(abs(one.samples - 1000) <= SAMPLES / 1_000 for one in told.instructions)


def test_a_listing_is_stored_once_and_later_only_its_new_parts(tmp_path: Path) -> None:
    hotter = replace(LISTING, instructions=(*CODE[1:], Instruction(1600, "EXIT", -1, {"wait": 9000})))
    lines = [*sampled(1), *sampled(2), *sampled(3, hotter)]
    path = record(tmp_path / "s", *lines)
    read = load(path).lines
    codes = [line.event for line in read if isinstance(line.event, events.CodeText)]
    assert [(len(one.lines), len(one.instructions)) for one in codes] == [(2, 60), (0, 1)]
    live, replayed = model(lines), model(read)
    assert live.runs == replayed.runs, "who reads it sees what was shown"
    listing = replayed.runs[3].listing("rest")
    assert listing is not None and listing.instructions[-1].text == "EXIT" and listing.instructions[-1].samples > 8000
    nothing = sampled(1, Listing())  # of a function that is not of this program
    assert model(load(record(tmp_path / "nothing", *nothing)).lines).runs == model(nothing).runs
    later = Recorder.at(tmp_path / "later", HEADER)
    for line in lines[-5:]:
        later.write(line)
    later.close()
    assert model(load(later.path).lines).runs[3].listing("rest") == model(sampled(3, hotter)).runs[3].listing("rest")


def test_equal_listings_share_one_object_of_bounded_size() -> None:
    told = model([*sampled(1), *sampled(2)])
    first, second = (dict(told.runs[number].code)["rest"] for number in (1, 2))
    assert isinstance(first, SampledCode) and isinstance(second, SampledCode) and first.text is second.text
    known, lower = (
        events.CodeText(t=0.0, code="c", instructions=((start, 0, word), *((2, 0, word),) * (count - 1)))
        for start, word, count in ((1001, "OLD", 400), (0, "NEW", 300))
    )
    whole = known.merged(lower)
    assert Counter(word for _, _, word in whole.instructions) == {"OLD": 400, "NEW": 112}
    assert whole.merged(lower) is whole and known.merged(known) is known


def test_a_run_with_a_known_listing_adds_little() -> None:
    """The largest recorded listings are measured; a kernel has at most four ops."""
    with gzip.open(shipped_folder() / "h200-ladder-n4096.fwt.jsonl.gz") as file:
        told = [raw for raw in file if raw.startswith((b'{"kind":"codetext"', b'{"kind":"codesamples"'))]
    texts, samples = told[::2], told[1::2]
    assert len(texts) == len(samples) == 22
    assert sum(len(gzip.compress(raw)) for raw in samples) < 22 * 900
    assert sum(len(gzip.compress(raw)) for raw in texts) < 22 * 2200


@given(st.lists(st.integers(0, 2**60), max_size=30), st.integers(0, 2**60))
def test_rounded_shares_have_the_sum_and_the_proportions(counts: list[int], total: int) -> None:
    shares = apportion(counts, total)
    if any(counts):
        assert sum(shares) == total
        assert all(abs(share * sum(counts) - count * total) < sum(counts) for share, count in zip(shares, counts, strict=True))
    else:
        assert not any(shares)


@pytest.mark.parametrize(
    "rows", [((),), ((7,),), ((0, 0),), ((0, 9, 5),), ((2**60, 0, 2**60), (2**60, 0, 5)), ((0, 0, 2**60, 0, 9),)]
)
def test_made_up_samples_are_bounded(rows: tuple[tuple[int, ...], ...]) -> None:
    text = text_of(LISTING, "c0de")
    made = events.CodeSamples(t=0.0, run=1, op="rest", code="c0de", reasons=("wait",), lines=rows, instructions=rows)
    listing = listing_of(made, text, 100)
    assert sum(line.samples for line in listing.lines) <= 100 and len(listing.instructions) == 60
    unknown = model([started(1, 1), as_line(replace(made, code="unknown"))]).runs[1]
    assert unknown.listing("rest") is None
