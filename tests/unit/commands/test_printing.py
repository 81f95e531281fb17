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


def test_columns_of_one_kind_go_on_below_and_the_width_is_what_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["", "pivot", "panels", "rest"], ["L1 hits", "1", "2", "3"], ["DRAM read", "40", "50", "60"]]
    monkeypatch.setenv("COLUMNS", "25")
    assert printing.side_by_side(rows) == [
        "           pivot  panels",
        "L1 hits        1       2",
        "DRAM read     40      50",
        "",
        "           rest",
        "L1 hits       3",
        "DRAM read    60",
    ]
    monkeypatch.setenv("COLUMNS", "80")
    assert len(printing.side_by_side(rows)) == 3
    for said, width in (("100", 100), ("0", math.inf), ("-5", math.inf), ("wide", math.inf), ("9" * 5000, math.inf)):
        monkeypatch.setenv("COLUMNS", said)
        assert printing.width() == width
