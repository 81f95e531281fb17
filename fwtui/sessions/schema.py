"""The JSON Schema (draft 2020-12) of a session's lines, generated from the event types."""

from __future__ import annotations

import json
import re
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import msgspec

from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events

FILE = f"schema-v{events.VERSION}.json"
_CRC = {"type": "string", "pattern": "^[0-9a-f]{8}$", "description": "CRC-32 of the line's bytes before this, its last member"}


def schema() -> dict[str, Any]:
    """The schema of a session's line: an event of a known kind within its bounds, or one of a newer kind."""
    document = msgspec.json.schema(reduce(or_, events.ALL))
    definitions: dict[str, Any] = document["$defs"]
    kinds = []
    for kind in events.ALL:
        definition = definitions[kind.__name__]
        definition["properties"]["crc"] = _CRC
        definition["required"].append("crc")
        kinds.append(kind.__struct_config__.tag)
    definitions["Header"]["required"] += ["format", "version"]
    definitions["Header"]["properties"]["format"] = {"const": events.FORMAT}
    definitions["Later"] = {
        "title": "Later",
        "description": "An unknown kind: readers ignore it, tools copy its line.",
        "type": "object",
        "properties": {
            "kind": {"type": "string", "not": {"enum": kinds}},
            "t": definitions["Notice"]["properties"]["t"],
            "crc": _CRC,
        },
        "required": ["kind", "crc"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of a fwtui session, format version {events.VERSION}.{events.MINOR}",
        "description": "Other fields are allowed and ignored; see README.md.",
        "anyOf": [*document["anyOf"], {"$ref": "#/$defs/Later"}],
        "$defs": definitions,
    }


def text() -> str:
    """The schema as the text of its file, a property a line."""
    return re.sub(r"\n(?: {5,}| {4}(?=[]}]))", "", json.dumps(schema(), indent=1, ensure_ascii=False)) + "\n"


def path() -> Path:
    """The path of the schema file."""
    return shipped_folder() / FILE
