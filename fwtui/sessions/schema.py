"""The format of a session's lines as a JSON Schema (draft 2020-12), made from the types that read them."""

from __future__ import annotations

import json
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
    """What every line of a whole session is: an event of a known kind within its bounds, or one of a kind of later."""
    made = msgspec.json.schema(reduce(or_, events.ALL))
    definitions: dict[str, Any] = made["$defs"]
    kinds = []
    for kind in events.ALL:
        told = definitions[kind.__name__]
        told["properties"]["crc"] = _CRC
        told["required"].append("crc")
        kinds.append(kind.__struct_config__.tag)
    definitions["Header"]["required"] += ["format", "version"]
    definitions["Header"]["properties"]["format"] = {"const": events.FORMAT}
    definitions["Later"] = {
        "title": "Later",
        "description": "A kind that this version does not know: readers ignore it, tools copy its line.",
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
        "description": "Members that are not named here are allowed and ignored; README.md says the rest.",
        "anyOf": [*made["anyOf"], {"$ref": "#/$defs/Later"}],
        "$defs": definitions,
    }


def text() -> str:
    """The schema as the file that ships with the sessions."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def path() -> Path:
    """Where that file is."""
    return shipped_folder() / FILE
