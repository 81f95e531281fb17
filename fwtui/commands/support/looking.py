"""Flags of every command that opens or draws screens, and the settings that they override."""

from __future__ import annotations

import argparse

from fwtui.machine import settings
from fwtui.machine.settings import Settings


def add_look(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("look")
    group.add_argument("--theme", metavar="NAME", help="colours; the palette (ctrl+p) shows the names")
    group.add_argument("--ascii", action="store_true", help="draw everything with plain characters")
    group.add_argument("--presenter", action="store_true", help="large figures and fewer panels, for a projector")


def preferred(given: argparse.Namespace, usual: Settings | None = None) -> Settings:
    """The user's settings (or `usual`) with these flags before them."""
    charset, presenter = "ascii" if given.ascii else None, "yes" if given.presenter else None
    options = {"theme": given.theme, "charset": charset, "presenter": presenter}
    return (settings.load() if usual is None else usual).with_options(options)
