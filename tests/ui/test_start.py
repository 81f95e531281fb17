"""What a start does not do twice, and what waits for the first frame."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from fake_live import FakeLive
from pressing import opened, until
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.screen import Screen

from fwtui.experiment.experiment import Experiment
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.look import HEIGHTS, WIDTHS, classes_at
from fwtui.tui.frame.places import PLACES, Place

SIZE = (120, 40)


async def test_a_screen_has_from_the_start_the_classes_that_textual_gives_it(dashboard: FwtuiApp) -> None:
    screen = Screen[None]()
    for width in range(1, 130):
        for height in range(1, 60):
            given = screen._get_breakpoint_classes(width, WIDTHS) | screen._get_breakpoint_classes(height, HEIGHTS)
            assert classes_at(width, height) == given
    async with dashboard.run_test(size=SIZE):
        assert dashboard.screen.has_class("-wide", "-tall")
        assert not dashboard.screen.has_class("-narrow") and not dashboard.screen.has_class("-short")


@pytest.mark.parametrize("place", (PLACES[0], PLACES[3]), ids=lambda place: place.name)
async def test_no_style_of_a_new_screen_is_found_twice(
    dashboard: FwtuiApp, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes Textual as long as everything else together to find those of all widgets again."""
    passes: list[list[DOMNode]] = []
    update = Stylesheet.update_nodes

    def counted(self: Stylesheet, nodes: Iterable[DOMNode], animate: bool = False) -> None:
        passes.append(list(nodes))
        update(self, passes[-1], animate)

    monkeypatch.setattr(Stylesheet, "update_nodes", counted)
    parsed: list[Stylesheet] = []
    parse = Stylesheet.reparse
    monkeypatch.setattr(Stylesheet, "reparse", lambda self: parsed.append(self) or parse(self))
    async with opened(dashboard, place.key):
        widgets = {dashboard.screen, *dashboard.screen.query("*")}
        found = [len(widgets.intersection(nodes)) for nodes in passes]
        whole = [nodes for nodes in passes if len(nodes) > 1 and nodes[0] is dashboard.screen]
    assert len(widgets) > 15 and sum(found) > 0 and not whole
    assert len(parsed) == 1, "the theme's, and never for another place"


async def test_children_begin_when_something_is_seen(live: FakeLive) -> None:
    told: list[str] = []

    class Watched(FwtuiApp):
        def post_display_hook(self) -> None:
            told.append("frame")

    drain = live.drain
    live.drain = lambda: (told.append("drain"), drain())[1]  # type: ignore[method-assign]
    async with Watched(live, Experiment(kernel="tiled-cpu", n=512), found=Hardware(reason="none")).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: told.count("drain") > 2)
    assert told.index("frame") < told.index("drain")
