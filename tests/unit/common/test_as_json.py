"""JSON that every reader of JSON takes, and tables beside it."""

from __future__ import annotations

import io
import json
from math import inf, nan

from fwtui.analysis import export
from fwtui.common.as_json import as_json


def test_what_is_not_finite_is_null_and_in_tables_empty() -> None:
    told = {"a": [inf, {"b": -inf}, 1.5], "ü": nan}
    assert json.loads(as_json(told)) == {"a": [None, {"b": None}, 1.5], "ü": None}
    assert as_json({"ü": 1.5}) == '{"\\u00fc": 1.5}' and as_json({"ü": inf}, ensure_ascii=False) == '{"ü": null}'
    for write, text in ((export.write_csv, "a,b\n,1\n"), (export.write_markdown, "|  | 1 |\n")):
        out = io.StringIO()
        write([{"a": inf, "b": 1}], out)
        assert out.getvalue().endswith(text)
