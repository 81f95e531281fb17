"""Lessons are plain: short sentences, and every term is explained where the course first uses it, and once in the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import mean

from fwtui.learn.course import TERM
from fwtui.learn.lessons import Lessons, lessons
from fwtui.learn.placeholders import NAMED
from fwtui.tui.frame.glossary import GLOSSARY, names, used
from fwtui.tui.frame.places import PLACES, load
from fwtui_kernels import registry

MOST_WORDS, USUAL_WORDS = 28, 24  # of a sentence, and of the sentences of a lesson on average
WANTED = ("relaxation", "tile", "pivot", "panel", "occupancy", "GPM", "bandwidth by model", "limit", "indicative", "checksum")
COURSE = lessons()


def sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(r"(?<=[.?!])\s+", " ".join(text.split())) if sentence]


def told() -> Iterator[tuple[str, str]]:
    """What a student reads, by where it stands."""
    for step in COURSE.course:
        for part in ("text", "afterwards"):
            yield f"{step.name} {part}", "\n".join(COURSE.lines(step, getattr(step.written, part)))
        yield f"{step.name} question", COURSE.ask(step)
    for kernel in registry().values():
        yield f"{kernel.id} summary", kernel.summary
        yield f"{kernel.id} lesson", kernel.lesson
    yield from GLOSSARY


def test_sentences_are_short_and_the_glossary_explains_each_term_once() -> None:
    lengths = {where: [len(sentence.split()) for sentence in sentences(text)] for where, text in told() if text}
    assert {where: max(words) for where, words in lengths.items() if max(words) > MOST_WORDS} == {}
    assert {where: mean(words) for where, words in lengths.items() if mean(words) > USUAL_WORDS} == {}
    terms = [name for term, _ in GLOSSARY for name in names(term)]
    assert len(terms) == len(set(terms)) and set(WANTED) <= set(terms)
    for place in PLACES:
        for where in filter(None, (place.live, place.recorded)):
            assert not {name for word, _ in load(where).WORDS for name in names(word)} & set(terms), where


def _words(course: Lessons) -> Iterator[tuple[str, str]]:
    """What each step says, in the order in which it is read; titles come later, as they need not explain."""
    for step in course.course:
        yield step.name, NAMED.sub("", f"{step.written.text}\n{step.ask}\n{step.written.afterwards}")


def test_the_course_explains_each_term_and_takes_less_than_three_quarters_of_an_hour() -> None:
    everyday = {"graph", "rate", "model"}  # words that the course uses as anybody does
    known: set[str] = set()
    for name, words in _words(COURSE):
        explained = {term.removesuffix("s").lower() for term in TERM.findall(" ".join(words.split()))}
        here = {term.removesuffix("s").lower() for term in used(TERM.sub(r"\1", words))} - everyday
        assert here - known <= explained, f"{name} uses a term that no step has explained"
        assert not explained & known, f"{name} explains again"
        for term in explained:
            assert used(term), f"{term} is not in the glossary"
            first = re.search(rf"\*?\b{re.escape(term)}", " ".join(words.split()), re.IGNORECASE)
            assert first is not None and first[0].startswith("*"), f"{name} uses {term} before it explains it"
        known |= explained
    assert {"relaxation", "tile", "pivot", "panel", "occupancy", "gpm", "bandwidth by model", "limit"} <= known
    assert COURSE.minutes == -(-sum(map(COURSE.seconds, COURSE.course)) // 60) < 45
    assert all(COURSE.seconds(step) > 30 for step in COURSE.course), "a question alone takes that long"
