"""Somebody else's session: whatever its strings and numbers say, nothing is obeyed and nothing breaks.

Strings go straight into the Model here, past the decoder's cleaning: markup must be harmless without it. Escape
sequences are the decoder's business, so those go through a file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import scenes
from fake_live import FakeLive
from textual.widgets import DataTable

from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.requests import Hardware
from fwtui.tui import render
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
ESCAPES = [
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[31m",
    "\x9b31m\x9d0;title\x9c",
    "\u202egnp.exe\u2066",
    "a\x00b\x07c\x08d\x7f",
    "line\nbreak\r\x85\u2028",
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
        app.tick()
        await pilot.pause()
        await pilot.pause()
        shown = screen_text(app)
        assert shown.count(text[:12]) >= 4  # as it was written: banner, log line, title, table
        for y, line in enumerate(shown.split("\n")[:38]):
            for match in re.finditer("free|here|loud", line):
                await pilot.click(offset=(match.start() + 1, y))
        await pilot.press("l")
        await pilot.pause()
        assert text[:12] in screen_text(app)
        await pilot.press("escape")
        app.screen.query_one(DataTable).focus()
        await pilot.press("down", "enter", "b")
        await pilot.pause()
    assert Watched.ran == 0


@pytest.mark.parametrize("text", [ESCAPES[0], *(pytest.param(text, marks=pytest.mark.slow) for text in ESCAPES[1:])])
def test_no_escape_sequence_reaches_a_picture(tmp_path: Path, text: str) -> None:
    path = scenes.write(tmp_path / "synthetic.fwt.jsonl", told(text))
    for name in ("out.txt", "out.svg"):
        render(path, None, (120, 40), tmp_path / name)
        shown = (tmp_path / name).read_text(encoding="utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202a-\u202e\u2066-\u2069]", shown)
