"""The five documents as repeatable experiments, and tests of their claims."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from fwtui.campaigns.reproduce.preset import Preset

DOCUMENTS = ("lund-smith", "henriod", "sing", "cs542200", "catinello")


def presets() -> Mapping[str, Preset]:
    """Every document's preset by name."""
    return {name: importlib.import_module(f"{__name__}.documents.{name.replace('-', '_')}").PRESET for name in DOCUMENTS}
