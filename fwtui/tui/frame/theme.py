"""The program's own colours: calm, dark, one accent. Everything else takes its colours from the theme's variables."""

from __future__ import annotations

from textual.theme import Theme

FWTUI = Theme(
    name="fwtui",
    primary="#56b6c2",
    secondary="#7f96a8",
    accent="#56b6c2",
    warning="#d8a657",
    error="#e5737b",
    success="#8fbf7f",
    foreground="#d3dbe1",
    background="#11161b",
    surface="#161d23",
    panel="#1c252d",
    dark=True,
    variables={
        "border": "#56b6c2",
        "border-blurred": "#2b3741",
        "footer-background": "#161d23",
        "block-cursor-background": "#2b4a52",
        "block-cursor-foreground": "#e8f1f3",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1f2c33",
        "input-selection-background": "#56b6c2 35%",
    },
)
