"""Strings from outside, made safe to show."""

from __future__ import annotations

import re

MAX_LENGTH = 2000
QUOTED = 40
# terminals act on C0 (all but tab), DEL, C1; bidi controls and invisible characters let a name lie about itself
_UNSAFE = (  # compiled on first use, so that `--help` need not wait
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def shown(text: str) -> str:
    """A user's own text for a sentence: quoted, safe and shortened."""
    return repr(brief(text))


def brief(text: str) -> str:
    """The text, safe and cut to 40 characters."""
    return shortened(clean(text), QUOTED)


def shortened(text: str, cells: int) -> str:
    """A text in at most so many cells, with an ellipsis if it is cut."""
    return text if len(text) <= cells else text[: max(cells - 1, 0)] + "…"


def clean(text: str) -> str:
    """The text without anything a terminal would obey, cut to 2,000 characters; line breaks become spaces."""
    if len(text) > 8 * MAX_LENGTH:
        text = text[: 8 * MAX_LENGTH]
    return re.sub(_UNSAFE, "", re.sub(r"\r?\n", " ", text))[:MAX_LENGTH]


def cut(text: str, width: int) -> str:
    """At most so many cells of a name, cut in the middle, as many names begin alike."""
    if len(text) <= width:
        return text
    before = width // 2
    return f"{text[:before]}…{text[len(text) - (width - 1 - before) :]}"
