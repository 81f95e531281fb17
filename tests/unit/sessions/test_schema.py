"""The schema and the specification of the format: what they say is what the reader does."""

import gzip
import json
import re
import runpy
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from msgspec import inspect, structs

from fwtui.common.errors import Corrupt
from fwtui.sessions import schema
from fwtui.sessions.folders import PACKED, SUFFIX, files_in, shipped_folder
from fwtui.sessions.library import model_of
from fwtui.sessions.reader import load
from fwtui.stream import codec, events

DATA = Path(__file__).parents[2] / "data"
SOME = runpy.run_path(str(DATA / "strategies.py"))
SESSIONS = [*sorted(DATA.glob(f"golden-v*{SUFFIX}")), *files_in(shipped_folder())]
WHOLE = schema.schema()
TYPES: dict[str, tuple[type, ...]] = {
    **{"object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float)},
    **{"boolean": (bool,), "null": (type(None),)},
}
KNOWN = {
    *("$ref", "anyOf", "type", "enum", "const", "not", "pattern", "minimum", "maximum", "properties", "required", "items"),
    *(
        "additionalProperties",
        "prefixItems",
        "minItems",
        "maxItems",
        "maxProperties",
        "title",
        "description",
        "default",
        "$schema",
        "$defs",
    ),
}


def fits(value: Any, rule: Any) -> bool:
    """Whether a decoded JSON value obeys a rule: the part of JSON Schema that is used, and nothing is silently skipped."""
    if isinstance(rule, bool):
        return rule
    assert not set(rule) - KNOWN, f"the test does not know {set(rule) - KNOWN}"
    if "$ref" in rule and not fits(value, WHOLE["$defs"][rule["$ref"].removeprefix("#/$defs/")]):
        return False
    if "anyOf" in rule and not any(fits(value, one) for one in rule["anyOf"]):
        return False
    if "not" in rule and fits(value, rule["not"]):
        return False
    if "type" in rule and (not isinstance(value, TYPES[rule["type"]]) or (isinstance(value, bool) and rule["type"] != "boolean")):
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if "const" in rule and value != rule["const"]:
        return False
    if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
        return False
    if isinstance(value, (int, float)) and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
        return False
    if isinstance(value, dict):
        named = rule.get("properties", {})
        others = rule.get("additionalProperties", True)
        if len(value) > rule.get("maxProperties", len(value)):
            return False
        return set(rule.get("required", ())) <= set(value) and all(fits(v, named.get(k, others)) for k, v in value.items())
    if isinstance(value, list):
        first = rule.get("prefixItems", [])
        rules = [*first, *[rule.get("items", True)] * (len(value) - len(first))]
        return rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)) and all(
            fits(v, r) for v, r in zip(value, rules, strict=False)
        )
    return True


def test_the_file_is_what_the_types_say() -> None:
    assert schema.path().read_text(encoding="utf-8") == schema.text(), "run `fwtui docs`"


@pytest.mark.parametrize("path", [*SESSIONS[:3], *(pytest.param(path, marks=pytest.mark.slow) for path in SESSIONS[3:])])
def test_every_line_of_every_session_fits(path: Path) -> None:
    loaded = load(path)
    assert loaded.complete and all(fits(json.loads(line.raw), WHOLE) for line in loaded.lines)


@given(SOME["any_event"]())
@settings(max_examples=100)
def test_whatever_can_be_written_fits(event: events.Event) -> None:
    if isinstance(event, events.Header):
        event = structs.replace(event, format=events.FORMAT)
    assert fits(json.loads(codec.encode(event)), WHOLE)


@pytest.mark.parametrize("kind", events.ALL, ids=lambda kind: kind.__name__)
def test_what_the_reader_refuses_does_not_fit(kind: type[events.Event]) -> None:
    told = inspect.type_info(kind)
    whole = SOME["filled"](told)
    whole["format"] = events.FORMAT if kind is events.Header else "word"
    refused = accepted = 0
    for path, leaf in SOME["leaves"](told, whole):
        for odd in (-(10**18), 10**19, 1e300, "word", None, [], {"a": 1}, 0.5, True):
            holder = changed = json.loads(json.dumps(whole))
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = odd
            sealed = codec.seal(json.dumps(changed, separators=(",", ":")).encode())[:-1]
            try:
                read = isinstance(codec.decode(sealed), kind)
            except Corrupt:
                read = False
            by_format = kind is events.Header and path == ("format",)  # the reader looks at that later
            whole_number = isinstance(odd, float) and odd.is_integer() and isinstance(leaf, inspect.IntType)
            if not by_format and not whole_number:  # JSON Schema has 1e3 and 1000 as one number
                assert fits(json.loads(sealed), WHOLE) == read, (path, odd)
            refused, accepted = refused + (not read), accepted + read
    assert refused and (accepted or kind is events.End)


@pytest.mark.parametrize(
    ("line", "well"),
    [
        ({"kind": "heatmap", "t": 1, "crc": "0123abcd", "cells": [1]}, True),
        ({"kind": "heatmap", "t": -1, "crc": "0123abcd"}, False),
        ({"kind": "notice", "t": 1, "text": "a", "mood": "fine", "crc": "0123abcd"}, True),
        ({"kind": "notice", "t": 1, "text": "a", "crc": "0123ABCD"}, False),
        ({"kind": "notice", "t": 1, "text": "a"}, False),
        ({"kind": "notice", "t": 1, "crc": "0123abcd"}, False),
        ({"t": 1, "crc": "0123abcd"}, False),
        ({"kind": "header", "t": 0, "program": "p", "created": "c", "crc": "0123abcd"}, False),
        ([], False),
    ],
)
def test_members_and_kinds_of_later_are_allowed(line: Any, well: bool) -> None:
    assert fits(line, WHOLE) == well


def test_every_version_has_its_golden_file() -> None:
    names = {path.name for path in DATA.glob(f"golden-v*{SUFFIX}")}
    assert {f"golden-v{version}{SUFFIX}" for version in range(1, events.VERSION + 1)} <= names
    for name in names:
        assert load(DATA / name).complete


@pytest.mark.parametrize("pandas", ["pandas", ""], ids=["pandas", "what stands for it"])
def test_the_readme_reads_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pandas: str) -> None:
    pd = pytest.importorskip(pandas) if pandas else MagicMock()
    (block,) = re.findall(r"```python\n(.*?)```", (shipped_folder() / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(block.splitlines()) <= 12
    path = shipped_folder() / f"lecture-tiles{PACKED}"
    (tmp_path / "a.fwt.jsonl").write_bytes(gzip.decompress(path.read_bytes()) + b'{"kind":"torn')
    monkeypatch.chdir(tmp_path)
    printed: list[Any] = []
    exec(block.replace("import pandas as pd\n", ""), {"pd": pd, "print": printed.append})  # noqa: S102  (our own README)
    runs = model_of(load(path)).runs.values()
    if pandas:
        assert dict(printed[0]) == {run.id: run.n**3 / run.done.median for run in runs if run.done and run.done.median}
    else:
        planned, done, phases, *_ = (call.args[0] for call in pd.DataFrame.call_args_list)
        assert [(row["run"], row["n"]) for row in planned] == [(run.id, run.n) for run in runs]
        assert [row["median"] for row in done] == [run.done.median for run in runs if run.done]
        assert [(row["run"], row["phase"], row["seconds"]) for row in phases] == [
            (run.id, part.key, part.seconds) for run in runs for part in run.phases
        ]
