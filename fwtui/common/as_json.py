"""Results as JSON for other programs."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def as_json(value: Any, **how: Any) -> str:
    """Like json.dumps, but a number that is not finite, for which JSON has no word, is null."""
    try:
        return json.dumps(value, allow_nan=False, **how)
    except ValueError:
        return json.dumps(msgspec.json.decode(msgspec.json.encode(value)), **how)
