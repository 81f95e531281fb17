"""Source lines of a run: changes since the previous version, and sampled warps."""

import pytest
from msgspec.structs import replace

from fwtui.analysis.recorded_source import MAX, excerpt
from fwtui.common.errors import Refused
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.stream.events import Source
from fwtui.stream.run import Run


def runs_of(name: str) -> list[Run]:
    return [*load_model(shipped_folder() / f"{name}.fwt.jsonl.gz")[0].runs.values()]


def test_changes_since_the_previous_version_are_marked() -> None:
    runs = runs_of("lecture-own-kernel")
    found = excerpt(runs, runs[1], 24, 27)
    rows = [(row.sign, row.line.line, row.line.text.strip()) for row in found.rows]
    assert rows == [
        (" ", 24, "for k in range(first, last):"),
        ("-", 0, "for j in range(n):"),
        ("-", 0, "for i in range(n):"),
        ("+", 25, "for i in range(n):"),
        ("+", 26, "for j in range(n):"),
        (" ", 27, "d[i, j] = min(d[i, j], d[i, k] + d[k, j])"),
    ]
    assert (found.file, found.before, found.total) == ("mine.py", 1, 0)
    assert excerpt(runs, runs[0], 24, 27).before == 0
    added = [row.line.line for row in excerpt(runs, runs[3]).rows if row.sign == "+"]
    assert added == [30], "without lines those that changed"
    same = [*runs[:3], replace(runs[3], source=runs[2].source)]
    assert excerpt(same, same[3], 1, 9).before == 2, "a run of the same source is no version before"
    with pytest.raises(Refused, match=r"mine.py of run 1 has no line 90; choose a line up to 32"):
        excerpt(runs, runs[0], 90, 92)


def test_sampled_lines_are_marked() -> None:
    runs = runs_of("h200-n4096-naive-blocked")
    found = excerpt(runs, runs[1])
    hot = max(found.rows, key=lambda row: sum(row.line.reasons.values())).line
    assert sum(hot.reasons.values()) == found.most > 0 and found.total >= found.most and found.before == 0
    lines = [one for op, _ in runs[1].code for one in getattr(runs[1].listing(op), "lines", ())]
    assert (hot.file, hot.line, hot.text) in {(one.file, one.line, one.text) for one in lines}
    with pytest.raises(Refused, match="run 1 has no source up to this moment"):
        excerpt(runs, replace(runs[0], code=()))


def test_a_source_of_many_equal_lines_is_compared_at_once() -> None:
    one, other = runs_of("lecture-own-kernel")[:2]
    parts = [
        tuple(Source(t=0.0, run=1, file="mine.py", first=1 + 9000 * n, lines=(text, "x") * 4500) for n in range(6))
        for text in ("x", "y")
    ]
    runs = [replace(run, source=source) for run, source in zip((one, other), parts, strict=True)]
    assert len(excerpt(runs, runs[1], 1, 90000).rows) == MAX  # an hour, if each were compared with each
