"""Somebody else's session: whatever its strings and numbers say, nothing is obeyed and nothing breaks.

Strings go straight into the Model here, past the decoder's cleaning: markup must be harmless without it. Escape
sequences are the decoder's business, so those go through a file.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import scenes
from fake_live import FakeLive
from pressing import go, press
from textual.widgets import DataTable

from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text

MARKUP = [
    "[@click=app.pwn]free[/]",
    "[/",
    "[/]",
    "[/red]",
    "[link='https://example.com']here[/link]",
    "[bold red on blue]loud[/]",
    "$accent $nothing %s {0} \\[x]",
    "kernel[tile=32]",
]


def hostile(event: Any, text: str) -> Any:
    """The event with that text in every string that is shown as it is."""
    if isinstance(event, str):
        return text
    if isinstance(event, tuple):
        return tuple(hostile(part, text) for part in event)
    if isinstance(event, dict):
        return {f"{text} {key}": value for key, value in event.items()}
    if isinstance(event, msgspec.Struct):
        # those decide what is shown, so they keep their meaning
        kept = ("kind", "format", "backend", "outcome", "phase", "key", "op", "stage", "launch")
        return type(event)(
            **{f: getattr(event, f) if f in kept else hostile(getattr(event, f), text) for f in event.__struct_fields__}
        )
    return event


class Watched(FwtuiApp):
    """Knows whether an action from a string ran."""

    ran = 0

    def action_pwn(self) -> None:
        Watched.ran += 1


def told(text: str) -> list[events.Event]:
    session = [hostile(event, text) for event in scenes.gpu_session() if not isinstance(event, events.Telemetry)]
    end = session[-1].t
    fault = events.Fault(t=end, source="worker", code="died", message=text, stderr=f"{text}\n{text}")
    return [
        *session,
        events.Notice(t=end, text=text, level=text),
        events.Marker(t=end, text=text, title=text, answer=text),
        fault,
    ]


@pytest.mark.parametrize(
    "text", [MARKUP[0], MARKUP[2], *(pytest.param(text, marks=pytest.mark.slow) for text in (MARKUP[1], *MARKUP[3:]))]
)
async def test_markup_from_data_is_plain_text_wherever_it_is_clicked(text: str) -> None:
    Watched.ran = 0
    live = FakeLive(scenes.GPU)
    app = Watched(live, Experiment(kernel="katz-kider", n=1024), still=True, found=Hardware())
    for event in told(text):
        live.model.apply(event)
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        shown = await go(pilot)
        assert shown.count(text[:12]) >= 4  # as it was written: banner, log line, title, table
        for y, line in enumerate(shown.split("\n")[:38]):
            for match in re.finditer("free|here|loud", line):
                await pilot.click(offset=(match.start() + 1, y))
        await press(pilot, "l")
        assert text[:12] in screen_text(app)
        await pilot.press("escape")
        app.screen.query_one(DataTable).focus()
        await press(pilot, "down", "enter", "b")
    assert Watched.ran == 0
