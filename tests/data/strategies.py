"""Hypothesis strategies for every kind of event, derived from the types themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from fwtui.common.text import sanitise
from fwtui.stream import events
from fwtui.stream.codec import MIN

TEXT = st.text(max_size=30).map(sanitise)


def event(kind: type[events.Event]) -> st.SearchStrategy[Any]:
    """Return a strategy for valid events of the kind with clean strings."""
    return _strategy(inspect.type_info(kind))


def any_event() -> st.SearchStrategy[Any]:
    return st.sampled_from(events.ALL).flatmap(event)


def leaves(kind: inspect.Type, value: Any) -> Iterator[tuple[tuple[str | int, ...], inspect.Type]]:
    """Yield the path and the type of each string and number in a decoded JSON value of the kind."""
    kind = _required(kind)
    if isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name in value:
                for path, leaf in leaves(field.type, value[field.encode_name]):
                    yield (field.encode_name, *path), leaf
    elif isinstance(kind, inspect.DictType):
        for key in value:
            for path, leaf in leaves(kind.value_type, value[key]):
                yield (key, *path), leaf
    elif isinstance(kind, (inspect.VarTupleType, inspect.TupleType)):
        for index, item in enumerate(value):
            item_type = kind.item_type if isinstance(kind, inspect.VarTupleType) else kind.item_types[index]
            for path, leaf in leaves(item_type, item):
                yield (index, *path), leaf
    elif isinstance(kind, (inspect.StrType, inspect.IntType, inspect.FloatType)):
        yield (), kind


def filled(kind: inspect.Type) -> Any:
    """Return a JSON value of the kind with all fields and one item in each list and dictionary."""
    kind = _required(kind)
    if isinstance(kind, inspect.StructType):
        tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
        return tag | {field.encode_name: filled(field.type) for field in kind.fields}
    if isinstance(kind, inspect.DictType):
        return {"key": filled(kind.value_type)}
    if isinstance(kind, inspect.VarTupleType):
        return [filled(kind.item_type)]
    if isinstance(kind, inspect.TupleType):
        return [filled(item) for item in kind.item_types]
    if isinstance(kind, inspect.BoolType):
        return True
    return "word" if isinstance(kind, inspect.StrType) else 1


def _required(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.UnionType):
        return next(item for item in kind.types if not isinstance(item, inspect.NoneType))
    return kind


def _strategy(kind: inspect.Type) -> st.SearchStrategy[Any]:
    if isinstance(kind, inspect.UnionType):
        return st.one_of(*(_strategy(item) for item in kind.types))
    if isinstance(kind, inspect.StructType):
        # a field that is absent must come back as its default
        always = {f.name: _strategy(f.type) for f in kind.fields if f.required}
        sometimes = {f.name: _strategy(f.type) for f in kind.fields if not f.required}
        return st.fixed_dictionaries(always, optional=sometimes).map(lambda values: kind.cls(**values))
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(_strategy(kind.key_type), _strategy(kind.value_type), max_size=3)
    if isinstance(kind, inspect.VarTupleType):
        return st.lists(_strategy(kind.item_type), max_size=min(3, kind.max_length or 3)).map(tuple)
    if isinstance(kind, inspect.TupleType):
        return st.tuples(*(_strategy(item) for item in kind.item_types))
    if isinstance(kind, inspect.IntType):
        return st.integers(kind.ge, kind.le)
    if isinstance(kind, inspect.FloatType):
        return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or abs(x) >= MIN)
    if isinstance(kind, inspect.NoneType):
        return st.none()
    if isinstance(kind, inspect.BoolType):
        return st.booleans()
    assert isinstance(kind, inspect.StrType), kind
    return TEXT
