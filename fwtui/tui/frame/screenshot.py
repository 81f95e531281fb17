"""What is on the screen, as SVG or as lines of text."""

from __future__ import annotations

import io
import re
from typing import Any

from rich.console import Console
from textual.app import App

# fonts from somebody's server: a picture that is looked at should not ask for anything
_FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")


def screen_svg(app: App[Any]) -> str:
    """The screen as it is, without a word to any other machine."""
    return _FONTS.sub("", app.export_screenshot(title="fwtui"))


def screen_text(app: App[Any]) -> str:
    """The screen as lines of plain text."""
    width, height = app.size
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, record=True, legacy_windows=False)
    console.print(app.screen._compositor.render_update(full=True))
    return "\n".join(line.rstrip() for line in console.export_text(styles=False).split("\n")).rstrip("\n") + "\n"
