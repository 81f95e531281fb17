"""The codec: damaged, hostile or unknown lines do not get through, and valid events come back equal."""

import json
import runpy
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect
from processes import DATA
from recorded_sessions import GOLDEN

from fwtui.common.errors import Corrupt
from fwtui.common.text import MAX_LENGTH, sanitise
from fwtui.stream import codec, events

SOME = runpy.run_path(str(DATA / "strategies.py"))
LINES = GOLDEN.read_bytes().splitlines()

HOSTILE = [
    *("\x1b]52;c;ZXZpbA==\x07", "\x1b]52;c;ZXZpbA==\x1b\\", "\x9d52;c;ZXZpbA==\x9c"),  # write the clipboard, the last one in C1
    *("\x1b]0;title\x07", "\x1b]2;title\x1b\\"),
    *("\x1b]8;;file:///etc/passwd\x1b\\here\x1b]8;;\x1b\\", "\x9d8;;http://example.org\x9chere"),
    *("\x1b[31mred\x1b[0m", "\x9b31mred", "\x1b[2J\x1b[H", "\x1b[?1049l"),
    *("\x1b[6n", "\x1b[5i", "\x1bc", "\x1b#8"),
    *("\x1bP+q544e\x1b\\", "\x90+q544e\x9c", "\x1b_payload\x1b\\", "\x1b^payload\x1b\\", "\x1bX payload\x1b\\", "\x1bPpayload"),
    *("\x07" * 20, "over\rwritten", "back\x08\x08\x08\x08gone", "line\nbreak\r\nand\x0bmore\x0c"),
    *("\x00nul\x00", "\x0e\x0fshift", "\x7f\x7fdel", "next\x85line"),
    *("\u202egnp.exe", "\u2066isolate\u2069", "\u200fright\u200eleft\u061c", "zero\u200bwidth\u200c\u200d\u2060\ufeff"),
    *("\u2028line\u2029paragraph", "\U000e0001\U000e0041tag"),
    *("\ufff9interlinear\ufffa\ufffb", "soft\u00adhyphen", "\u206anominal"),
    *("[/", "[/red]", "[@click=app.bell]free[/]", "[link='\x1b]0;title\x07']x[/link]"),
    *("[link=file:///etc/passwd]x[/link]", "$(reboot)`reboot`", "../../../../etc/passwd"),
    *("%s%n{0}{0.__class__}", "\U0001f600 written as two escapes", "x" * 100_000),
]
NOT_NUMBERS = (*("NaN", "Infinity", "-Infinity", "1e999", "1e308", "-1e308"), *(str(2**70), "true", '"1"', "[]", "9" * 5000))


def seal(value: Any) -> bytes:
    return codec.seal(json.dumps(value, separators=(",", ":")).encode("utf-8", "surrogatepass"))[:-1]


def replaced(value: Any, path: tuple[str | int, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], leaf)
    return copy


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        yield from strings([getattr(value, name) for name in value.__struct_fields__])
    elif isinstance(value, dict):
        yield from strings([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item)


def is_safe(text: str) -> bool:
    return len(text) <= MAX_LENGTH and not any(
        c != "\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text
    )


def fields_of(kind: type[events.Event], *types: type[inspect.Type]) -> Iterator[tuple[Any, Any, inspect.Type]]:
    """Yield a complete JSON value of the kind with the path and type of each field of those types."""
    info = inspect.type_info(kind)
    value = SOME["filled"](info)
    for path, leaf in SOME["leaves"](info, value):
        if isinstance(leaf, types):
            yield value, path, leaf


@given(SOME["any_event"]())
@settings(max_examples=200)
def test_round_trip_of_any_event(event: events.Event) -> None:
    line = codec.encode(event)
    assert line.endswith(b"}\n") and line.count(b"\n") == 1
    assert codec.decode(line[:-1]) == event
    assert codec.as_line(event) == codec.Line(line[:-1], event)
    assert json.loads(line)["kind"] == type(event).__name__.lower()


@pytest.mark.parametrize("kind", events.ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("escaped", [True, False])
def test_hostile_strings_come_out_harmless(kind: type[events.Event], escaped: bool) -> None:
    for value, path, _ in fields_of(kind, inspect.StrType):
        for payload in HOSTILE:
            text = json.dumps(replaced(value, path, payload), ensure_ascii=escaped)
            try:
                event = codec.decode(codec.seal(text.encode("utf-8", "surrogatepass"))[:-1])
            except Corrupt as damage:
                assert is_safe(str(damage))
                continue
            assert type(event) is kind
            assert all(is_safe(text) for text in strings(event))
            assert sanitise(payload) in strings(event)


def test_hostile_keys_and_kinds_come_out_harmless() -> None:
    for payload in HOSTILE:
        header = SOME["filled"](inspect.type_info(events.Header)) | {"versions": {payload: payload}}
        event = codec.decode(seal(header))
        assert isinstance(event, events.Header) and all(is_safe(text) for text in strings(event.versions))
        unknown = codec.decode(seal({"kind": "x" + payload, "t": 1}))
        assert isinstance(unknown, codec.Unknown) and is_safe(unknown.kind)


@pytest.mark.parametrize("body", [b'"a\x1b[31mb"', b'"a\x00"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800x"', b'"\\udc00"'])
def test_strings_that_are_no_json_strings_are_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        codec.decode(codec.seal(b'{"kind":"notice","t":0,"text":%s}' % body)[:-1])


def test_nothing_invisible_survives_cleaning() -> None:
    """All of Unicode is tested; the exceptions of category Cf are visible signs."""
    visible = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in visible and character != "\t":
            assert sanitise(f"a{character}b") in ("ab", "a b"), hex(code)
    assert sanitise("tab\tstays, Zürich 漢字 😀") == "tab\tstays, Zürich 漢字 😀"


@pytest.mark.parametrize("kind", events.ALL, ids=lambda kind: kind.__name__)
def test_hostile_numbers_are_corrupt_in_every_field(kind: type[events.Event]) -> None:
    for value, path, _ in fields_of(kind, inspect.IntType, inspect.FloatType):
        text = json.dumps(replaced(value, path, "HERE"))
        for number in NOT_NUMBERS:
            with pytest.raises(Corrupt):
                codec.decode(codec.seal(text.replace('"HERE"', number).encode())[:-1])


@pytest.mark.parametrize("kind", events.ALL, ids=lambda kind: kind.__name__)
def test_every_number_is_bounded_and_holds_to_its_bounds(kind: type[events.Event]) -> None:
    for value, path, leaf in fields_of(kind, inspect.IntType, inspect.FloatType):
        assert isinstance(leaf, (inspect.IntType, inspect.FloatType))
        assert leaf.ge is not None and leaf.le is not None, (kind, path)
        for bound, beyond in ((leaf.ge, leaf.ge * 1.01 - 1), (leaf.le, leaf.le * 1.01 + 1)):
            decoded = codec.decode(seal(replaced(value, path, bound)))
            assert type(decoded) is kind
            outside = int(beyond) if isinstance(leaf, inspect.IntType) else beyond
            with pytest.raises(Corrupt):
                codec.decode(seal(replaced(value, path, outside)))


@pytest.mark.parametrize("kind", events.ALL, ids=lambda kind: kind.__name__)
def test_required_fields_are_required(kind: type[events.Event]) -> None:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    value = SOME["filled"](info)
    for field in info.fields:
        if field.required:
            for damaged in ({k: v for k, v in value.items() if k != field.name}, value | {field.name: None}):
                with pytest.raises(Corrupt):
                    codec.decode(seal(damaged))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b'"x"', b"1", b'{"t":0}', b'{"kind":1}', b'{"kind":"notice"}'])
def test_no_event_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        codec.decode(codec.seal(body)[:-1])
    with pytest.raises(Corrupt):
        codec.decode(body)


def test_a_corrupt_line_names_the_expected_type() -> None:
    with pytest.raises(Corrupt, match=r"^Expected `str`, got `int` - at `\$\.text`$"):
        codec.decode(seal({"kind": "notice", "t": 1, "text": 7}))


def test_the_kind_of_an_unknown_event_is_bounded_and_keeps_its_bytes() -> None:
    (line,) = codec.decode_lines([seal({"kind": "x" * 60_000, "t": 1}) + b"\n"])
    assert isinstance(line, codec.Line) and isinstance(line.event, codec.Unknown) and len(line.event.kind) == 2000
    raw = seal({"kind": "heatmap", "t": 3.5, "cells": [1, {"deep": [None, 1e300]}]})
    assert codec.decode(raw) == codec.Unknown(kind="heatmap", raw=raw, t=3.5)
    later = seal({"kind": "notice", "t": 1, "text": "a", "colour": {"from": "later"}})
    assert codec.decode(later) == events.Notice(t=1, text="a")
    assert list(codec.decode_lines([raw + b"\n" + later + b"\n"])) == [
        codec.Line(raw, codec.decode(raw)),
        codec.Line(later, codec.decode(later)),
    ]
    header = json.loads(codec.encode(events.Header(t=0, program="fwtui", created="")))
    assert (header["format"], header["version"], header["minor"]) == (events.FORMAT, events.VERSION, events.MINOR)


def test_an_event_that_is_too_long_loses_its_text_or_is_not_written() -> None:
    fault = events.Fault(t=0, source="worker", code="died", message="m", stderr="\x1b[0m" + "x" * 200_000)
    line = codec.encode(fault)
    assert len(line) <= codec.MAX_LINE
    assert codec.decode(line[:-1]) == codec.as_line(fault).event == msgspec.structs.replace(fault, stderr="[0m" + "x" * 1997)
    with pytest.raises(ValueError, match=r"verdict of .* bytes does not fit"):
        codec.encode(events.Verdict(t=0, run=1, verdict="negative cycle", how="", cycle=tuple(range(40_000))))
    longest = events.Verdict(t=0, run=1, verdict="negative cycle", how="", cycle=(1,) * 32_000)
    longest = msgspec.structs.replace(longest, how="x" * (codec.MAX_LINE - len(codec.encode(longest))))
    assert len(codec.encode(longest)) == codec.MAX_LINE
    with pytest.raises(ValueError, match="bytes does not fit"):
        codec.encode(msgspec.structs.replace(longest, how=longest.how + "x"))


@given(st.data())
@settings(max_examples=200)
def test_lines_do_not_depend_on_how_the_stream_is_cut(data: st.DataObject) -> None:
    whole = b"\n".join(LINES) + b"\nnot a line\n" + LINES[0] + b"\ntorn"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=20)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    items = list(codec.decode_lines(chunks))
    assert [item.raw if isinstance(item, codec.Line) else None for item in items] == [*LINES, None, LINES[0]]


@pytest.mark.parametrize("size", [7, 65536, 10**6])
def test_over_long_lines_are_one_corrupt_each(size: int) -> None:
    good = LINES[3]
    limit = b"y" * codec.MAX_LINE
    stream = good + b"\n" + limit + b"z\n" + limit + b"\n" + good + b"\n" + limit * 3
    pieces = list(codec.split(stream[i : i + size] for i in range(0, len(stream), size)))
    assert pieces == [good, None, limit, good, None]
    assert [*codec.split([limit, b"\n" + good, b"\n"])] == [limit, good]


@given(st.binary(max_size=300))
@settings(max_examples=500)
def test_any_bytes_are_an_event_or_corrupt(noise: bytes) -> None:
    for raw in (noise, codec.seal(noise)[:-1], codec.seal(b'{"kind":"notice","t":0,"text":"' + noise + b'"}')[:-1]):
        try:
            event = codec.decode(raw)
        except Corrupt:
            continue
        assert all(is_safe(text) for text in strings(event) if not isinstance(event, codec.Unknown))


@pytest.mark.parametrize("number", [b"5e-324", b"1E-0031", b"0." + b"0" * 40 + b"1"])
def test_a_number_too_near_to_0_to_divide_by_is_0(number: bytes) -> None:
    sample = codec.decode(codec.seal(b'{"kind":"sample","t":1,"run":1,"seconds":%s,"since":0.5}' % number)[:-1])
    assert isinstance(sample, events.Sample) and (sample.seconds, sample.since) == (0, 0.5)
    least = codec.decode(codec.seal(b'{"kind":"sample","t":1,"run":1,"seconds":1e-30,"since":%s}' % number)[:-1])
    assert isinstance(least, events.Sample) and (least.seconds, least.since) == (1e-30, 0)


def test_a_long_line_of_numbers_is_not_rebuilt_and_survives_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    step = events.PlanStep(1, "all", 10, ((0, 0, 64, 64),) * 32, ((0, 0, 64, 64),) * 32)
    plan = events.Plan(t=1, run=1, of=16, steps=(step,) * events.PLAN_STEPS)
    with monkeypatch.context() as patch:
        patch.setattr(codec, "_cleaned", None)
        assert codec.decode(codec.encode(plan)[:-1]) == plan
    for between in ("", " ", "\t", "\r"):  # a long text is, wherever it begins
        long = codec.decode(codec.seal(b'{"kind":"notice","t":1,"text":%s"%s"}' % (between.encode(), b"x" * 3000))[:-1])
        assert isinstance(long, events.Notice) and len(long.text) == MAX_LENGTH
    told = events.Counters(t=2, run=1, op="x", values={f"counter {number}": 1.5 for number in range(60)})
    line = codec.as_line(told).packed()
    assert isinstance(line.payload, codec.Undecoded) and (line.kind, line.t, line.event) == (events.Counters, 2, told)
    notice = events.Notice(t=1, text="x")
    assert codec.as_line(notice).packed() == codec.Line(b"", notice)
    assert [len(codec.Line(b"x" * size, notice).packed().raw) for size in (codec.LONG - 1, codec.LONG)] == [0, codec.LONG]


def test_a_line_that_this_program_wrote_is_read_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {line: event for line in LINES if not isinstance(event := codec.decode(line), codec.Unknown)}
    monkeypatch.setattr(codec, "_tag", None)  # which finds the kind of others' lines
    assert {line: codec.decode(line) for line in known} == known
