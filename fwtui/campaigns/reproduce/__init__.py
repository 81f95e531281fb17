"""The five documents as experiments that can be run again, and their claims put to the test."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from fwtui.campaigns.reproduce.preset import Preset

MODULES = {
    "lund-smith": "lund_smith.claims",
    "henriod": "henriod",
    "sing": "sing",
    "cs542200": "cs542200",
    "catinello": "catinello.claims",
}


def presets() -> Mapping[str, Preset]:
    """Every document's preset by name."""
    return {name: importlib.import_module(f"{__name__}.{module}").PRESET for name, module in MODULES.items()}
