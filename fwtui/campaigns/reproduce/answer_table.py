"""A document's claims with their answers, as rows for people."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.analysis.report import table
from fwtui.campaigns.reproduce.claim import REFUTED, RULE, UNTESTABLE, Answer, Claim
from fwtui.campaigns.reproduce.preset import Preset
from fwtui.campaigns.reproduce.results import Results

COLUMNS = ("id", "claim", "document", "here", "answer")
Row = tuple[Claim, Answer]


def answered(preset: Preset, results: Results) -> list[Row]:
    """Every claim of the document with its answer; takes seconds where a claim is about compiled code."""
    return [(claim, claim.answer(results)) for claim in preset.claims]


def lines(preset: Preset, results: Results, rows: Sequence[Row]) -> list[str]:
    """Everything that a person is shown of one document."""
    where = results.model.gpu.name if results.model.gpu is not None else "no GPU"
    out = [f"{preset.title}, here: {where}", ""]
    out += aligned([COLUMNS, *((c.id, c.words, c.document, a.value, a.verdict) for c, a in rows)])
    for word in (REFUTED, UNTESTABLE):
        out += [f"{c.id} {word}: {a.reason}" for c, a in rows if a.verdict == word and a.reason]
    out += [f"{c.id} note: {a.note}" for c, a in rows if a.note]
    for figure in preset.figures(results):
        out += ["", figure.title, *table(figure.rows)]
    out += ["", f"Rule: {RULE}."]
    return [*out, *(f"Left out: {text}" for text in results.left_out), ""]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with every column flush left: these are words with numbers in them."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
