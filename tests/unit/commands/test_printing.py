"""Rows that fit the terminal."""

import math

import pytest

from fwtui.commands.support import printing
from fwtui.commands.support.tables import fitted

ROWS = [
    ["run", "kernel", "checksum", "total", "result"],
    ["1", "naive", "c8806cff", "248 ms", "verified, indicative: only 1 pass; 10 are needed"],
    ["10", "katz-kider", "c8806cff", "31.5 ms", "verified"],
]


def test_texts_wrap_before_a_column_is_dropped_and_dropped_columns_are_named() -> None:
    lines = fitted(ROWS, math.inf, ["checksum"])
    assert lines[0] == "run  kernel      checksum    total  result"
    assert lines[1] == "  1  naive       c8806cff   248 ms  verified, indicative: only 1 pass; 10 are needed"
    assert fitted(ROWS, 60, ["checksum"]) == [
        "run  kernel      checksum    total  result",
        "  1  naive       c8806cff   248 ms  verified, indicative:",
        "                                    only 1 pass; 10 are",
        "                                    needed",
        " 10  katz-kider  c8806cff  31.5 ms  verified",
    ]
    assert fitted(ROWS, 50, ["checksum"]) == [
        "run  kernel        total  result",
        "  1  naive        248 ms  verified, indicative:",
        "                          only 1 pass; 10 are",
        "                          needed",
        " 10  katz-kider  31.5 ms  verified",
        "not shown for lack of room: checksum; a wider",
        "terminal or --json shows them",
    ]


@pytest.mark.parametrize("width", range(1, 90, 7))
def test_no_width_loses_a_word_of_what_is_shown(width: int) -> None:
    words = "".join(cell for line in fitted(ROWS, width, ["checksum"]) for cell in line.split())
    for word in ("katz-kider", "31.5", "verified", "kernel"):
        assert word in words


def test_the_width_is_what_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, width in (("100", 100), ("0", math.inf), ("-5", math.inf), ("wide", math.inf), ("9" * 5000, math.inf)):
        monkeypatch.setenv("COLUMNS", said)
        assert printing.width() == width
