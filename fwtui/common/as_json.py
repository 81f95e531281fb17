"""Results as JSON for other programs."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def as_json(value: Any, **how: Any) -> str:
    """Encode the value like json.dumps, with null for NaN and infinity, which JSON lacks."""
    try:
        return json.dumps(value, allow_nan=False, **how)
    except ValueError:
        return json.dumps(msgspec.json.decode(msgspec.json.encode(value)), **how)
