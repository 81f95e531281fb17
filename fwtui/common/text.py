"""Text from outside the program, made safe to show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category, east_asian_width

MAX_LENGTH = 2000
QUOTED = 40
FEW = 5  # up to this many choices are all listed
ALIKE = 0.65  # similarity (0 to 1) above which a name is suggested
MIN_BEGINNING = 4  # characters of a longer name that may abbreviate it
# terminals act on C0 (all but tab), DEL, C1; bidi controls and invisible characters let a name lie about itself
_UNSAFE = (  # compiled on first use: `--help` does not need it
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def quoted(text: str) -> str:
    """Quote, sanitise and shorten a user's own text for a message."""
    return repr(excerpt(text))


def suggest(text: str, choices: Iterable[str]) -> str:
    """Return the hint for an unknown name: the most similar one, or a list of some of the accepted names."""
    from difflib import SequenceMatcher  # imported only after a mistake

    candidates, wrong = list(dict.fromkeys(choices)), text[:QUOTED].strip().lower()

    def likeness(word: str) -> float:
        beginnings = {len(word), len(wrong) if len(wrong) >= MIN_BEGINNING else len(word)}
        return max(SequenceMatcher(None, wrong, word[:end].lower()).ratio() for end in beginnings)

    best = max(candidates, key=lambda word: (likeness(word), -abs(len(word) - len(wrong))), default="")
    if len(candidates) > FEW and likeness(best) >= ALIKE:
        return f"did you mean {sanitise(best)}?"
    return f"choose one of {', '.join(map(sanitise, candidates))}"


def excerpt(text: str) -> str:
    """Return the sanitised text, cut to 40 characters."""
    return truncate(sanitise(text), QUOTED)


def cells(text: str) -> int:
    """Return the number of terminal cells of a text: two for each wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(one) in "WF" else category(one) not in ("Mn", "Me", "Cf") for one in text)


def pad(text: str, width: int, right: bool = False) -> str:
    """Return the text padded with spaces to `width` cells; with `right`, right-aligned."""
    spaces = " " * (width - cells(text))
    return spaces + text if right else text + spaces


def truncate(text: str, cells: int) -> str:
    """Cut the text to that many cells, with an ellipsis if it is longer."""
    return text if len(text) <= cells else text[: max(cells - 1, 0)] + "…"


def sanitise(text: str) -> str:
    """Remove everything that a terminal would interpret, replace line breaks by spaces, and cut to 2,000 characters."""
    if len(text) <= MAX_LENGTH and text.isascii() and text.isprintable():
        return text
    if len(text) > 8 * MAX_LENGTH:
        text = text[: 8 * MAX_LENGTH]
    return re.sub(_UNSAFE, "", re.sub(r"\r?\n", " ", text))[:MAX_LENGTH]


def cut_middle(text: str, width: int) -> str:
    """Cut a name in the middle to that many cells, because many names have a common beginning."""
    if len(text) <= width:
        return text
    before = width // 2
    return f"{text[:before]}…{text[len(text) - (width - 1 - before) :]}"
