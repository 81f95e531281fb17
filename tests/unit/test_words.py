"""Stilted phrases stay out of strings, docstrings, comments and Markdown."""

import re
from pathlib import Path

import pytest

from fwtui.common import units

ROOT = Path(__file__).parents[2]
READ = (
    "fwtui/**/*.py",
    "fwtui/**/*.md",
    "kernels/**/*.py",
    "kernels/*.md",
    "sessions/*.md",
    "sessions/course/*.toml",
    "README.md",
)
BETTER = {  # a pattern in lower case, from the start of a word -> plain words for it
    "by turns": "alternately",
    "turns of (?:everybody|everyone)": "everyone's turns",
    r"needs not\b(?! (?:be|to|only))": "does not need",
    "other than in ": "unlike",
    "so[- ]many-th": "k-th",
    "so many of something": "a count",
    "(?:is|are|was|were) told of": "is reported",
    "stable: until the median is": "until the median settles",
    "to know it better": "for a better estimate",
    "counts? for nothing": "does not count",
    "can be had": "is available",
    "nothing that was measured": "the measurements do not",
    r"(?<!there )(?:is|are) no (?:numbers?|weights?|graphs?|graphml|toml|utf-8|integer|name for)\b": "is not a ...",
    r"for what is no\b": "if it is not a ...",
    "stands where": "is where",
    "changes? places": "swap",
    "(?:lies?|lying) on (?:its|their) side": "transposed",
    "turned over": "transposed",
    "being improved": "being updated",
    "nobody (?:reads|looks at) what": "no thread reads what",
    "(?:a|the) disk says no": "on a disk error",
    r"goes? round\b": "wraps around",
    "held against": "compared with",
    r"are a guide\b": "are approximate",
    "asks? memory for": "reads",
    "memory is asked": "requests to memory",
    "one and the same": "the same",
    r"for ever\b": "forever",
    "mend (?:that|this)": "correct that",
    "too little at once": "parallelism",
    "is what is read": "is the input",
    "as many as there are": "all",
    "what (?:came|comes) of it": "the outcome",
    r"how [\w' ]{1,30} (?:is|are) called": "the name of",
    "what (?:each|it|they) (?:is|are) called": "its name",
    r"for a person\b": "for the user",
    "a person (?:reads|marked)": "the user",
    "said beforehand": "checked before",
    "in so many words": "explicitly",
    "what is worth knowing": "summary",
    "(?:is|are) to be (?:told|known|expected|had)": "is reported, is expected",
    "bears? (?:it|one|nothing) out": "supports",
    "but for (?:the|its)": "except for the",
    "of which nothing is": "without any",
    "nobody listens": "the reader has gone",
    "reckoned": "estimated",
    r"as \S+ ha(?:s|ve|d) (?:it|them)": "as in",
    "not there at all": "not at all",
    "whoever": "name the role: user, lecturer, recording",
    "somebody": "name the role: user, lecturer, recording",
    "everybody": "every thread, all users",
    "what is not whole": "what is missing",
    "says? of (?:itself|themselves|them)": "describes",
    "kind of later": "newer kind",
    "word to a cell": "one word per cell",
    "results to a thread": "results per thread",
    "with a launch of its own": "with a separate launch",
    "so it is not they": "so they are not the reason",
    "is due to which": "the two effects",
    r"whatever (?:it|they) (?:is|are|says|does)\b": "any",
    "knows whole ones": "has only whole numbers",
    "(?:is )?kept by itself": "kept automatically",
    "raises (?:refused|[a-z]+error) where": "raises ... if",
    r"(?:none|empty) where\b(?! =)": "None if, empty if",
    "from here on": "from now on, from this value",
    r"so many\b": "that many, a limit",
    "of the user's own(?! kernel)": "the user's",
    "one's own": "the user's, your own",
    "may be said": "may be given",
    "is not whole": "is incomplete",
    "can(?:not)? be had": "is (not) available",
    r"(?<!there )is no (?:place|guess|key|stretch|address|command|kind|name)\b": "is not a ...",
    "what there is (?:not|of)": "what is missing, the widgets of",
    "that there is not": "that does not exist",
    "profiled apart": "in a separate profile",
    "with a way back": "with an undo",
    "takes? (?:that|the last change) back": "undoes",
    "come down standard input": "arrive on standard input",
    "stands? still": "is paused, does not change",
    "(?:a|the) marker stands|cue card stands|marker stands": "is",
    "where nobody": "if no ...",
    "broke off": "failed",
    "still heard": "still arriving",
}
# between two words: white space, the end of a literal and the start of the next one, or the sign of a comment
GAP = re.compile(r"""(?:\n\s*\#|["']\s*\n\s*f?["']|\s)+""")
PATTERNS = {re.compile(phrase): better for phrase, better in BETTER.items()}


def found(text: str) -> list[str]:
    """Line, phrase and plain words for each stilted phrase in a text."""
    words = GAP.sub(" ", text.lower())
    hits = [
        (hit.start(), f"{hit.group()!r}; better: {better}")
        for pattern, better in PATTERNS.items()
        for hit in pattern.finditer(words)
        if not words[: hit.start()][-1:].isalnum()
    ]
    return [f"{_line(text, at)}: {said}" for at, said in sorted(hits)]


def _line(text: str, at: int) -> int:
    """The line of a text that has the character `at` of its words."""
    for gap in GAP.finditer(text):
        if gap.start() >= at:
            break
        at += gap.end() - gap.start() - 1
    return text.count("\n", 0, at) + 1


def test_words_are_plain() -> None:
    files = [path for pattern in READ for path in sorted(ROOT.glob(pattern))]
    assert [f"{path.relative_to(ROOT)}:{hit}" for path in files for hit in found(path.read_text(encoding="utf-8"))] == []


def test_counts_have_their_nouns_from_one_helper() -> None:
    by_hand = re.compile(r"""'e?s' \* \(\w[\w.()]* (?:!= 1|> 1)\)|\bif [\w.()]+ == 1 else ["']e?s\b|["']1 \w+["'] if """)
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("fwtui/**/*.py"))}
    assert [f"{path}: {hit.group()}" for path, text in texts.items() for hit in by_hand.finditer(text)] == []
    assert [units.vertices(1), units.counted(0, "edge"), units.counted(1204, "row")] == ["1 vertex", "0 edges", "1,204 rows"]


@pytest.mark.parametrize(
    "text",
    [
        "first\nThe words Stand, and whoever reads",
        '"first"\nx = f"the rows are held "\n    "against the limit"\n',
        "# first\n# two matrices change\n# places\n",
    ],
)
def test_a_phrase_is_found_over_the_ends_of_lines(text: str) -> None:
    (hit,) = found(text)
    assert hit.startswith("2: ") and "; better: " in hit
