"""The five documents as experiments that can be run again, and their claims put to the test."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from fwtui.campaigns.reproduce.preset import Preset

DOCUMENTS = ("lund-smith", "henriod", "sing", "cs542200", "catinello")


def presets() -> Mapping[str, Preset]:
    """Every document's preset by name."""
    return {name: importlib.import_module(f"{__name__}.documents.{name.replace('-', '_')}").PRESET for name in DOCUMENTS}
