"""Private members of Textual: only one file uses them, and one sentence names a missing one."""

import pytest
from apps import own_classes
from pressing import opened
from rich.segment import Segment
from textual import _xterm_parser
from textual._compositor import Compositor
from textual._parser import Parser
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from fwtui.common.errors import Refused
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.textual_internals import NEEDS, check, leave_undrawn, parser, strips


def test_the_installed_textual_has_all_needed_members() -> None:
    """This test fails first if a new version renames a member."""
    assert [need.member for need in NEEDS if not need.there()] == []
    check()
    assert [message.key for message in parser().feed("a")] == ["a"]


async def test_an_undrawn_screen_is_drawn_when_its_lines_are_read(dashboard: FwtuiApp) -> None:
    class Counted(Widget):
        DEFAULT_CSS = "Counted { height: 1; }"
        drawn = 0

        def render_line(self, y: int) -> Strip:
            self.drawn += 1
            return Strip([Segment("counted")])

    async with opened(dashboard, size=(80, 24)) as pilot:
        leave_undrawn(dashboard.screen)
        await dashboard.screen.mount(one := Counted())
        for _ in range(2):
            one.refresh()
            await pilot.pause()
        assert one.drawn == 0 < one.size.width
        assert any("counted" in line.text for line in strips(dashboard.screen)) and one.drawn == 1


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        (App, "_handle_exception", "App._handle_exception .* an error in a screen would end the program"),
        (_xterm_parser, "XTermParser", "XTermParser .* keys would do nothing"),
        (Parser, "tick", "XTermParser .* keys would do nothing"),
        (Compositor, "render_strips", "Screen._compositor .* there would be no pictures"),
        (Compositor, "render_update", "Screen._compositor .* there would be no pictures"),
        (Screen, "__init__", "Screen._compositor .* there would be no pictures"),
    ],
)
def test_a_version_without_a_member_is_refused(owner: object, name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(owner, name)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=words) as refused:
        check()
    assert str(refused.value).count(".") <= 6 and "\n" not in str(refused.value)


def test_no_class_overrides_private_members_of_textual() -> None:
    found = {
        f"{one.__name__}.{name}"
        for one in own_classes()
        if issubclass(one, MessagePump)
        for name in vars(one)
        if name.startswith("_") and not name.startswith("__")
        for base in one.__mro__
        if base.__module__.startswith("textual.") and name in vars(base)
    }
    known = {"_merged_bindings", "_css_type_names", "_css_type_name", "_computes", "_decorated_handlers", "_inherit_css"}
    known |= {"_inherit_bindings", "_inherit_component_classes", "_reactives", "_css_path_type_name"}
    assert {name for name in found if name.partition(".")[2] not in known} == {"Survivor._handle_exception"}
