"""The queue of inputs: keys, pasted text and mouse events are handled one after the other, in their order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from textual.app import App
from textual.events import Event, InputEvent, Key, MouseDown, MouseEvent, MouseScrollDown, MouseScrollUp, Paste
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.timer import Timer

from fwtui.tui.actions import Action
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import searched

ROW_SECONDS = 0.5  # between two keys of a word that is typed
WAIT_SECONDS = 0.25  # for which the action of a letter waits for the next letter of a word
KEY_STUCK_AFTER = 5.0  # seconds after which the next input no longer waits for an attached widget
IN_WORD = ": the key was part of a typed word; press it again"
Act = Callable[[], Awaitable[object]]


class HeldAction(NamedTuple):
    """The action of a letter, until it is certain that the letter does not begin a word."""

    title: str
    act: Act
    timer: Timer


class Handled(Message):
    """Follows an input through the same widgets; once it arrives, they have handled the input."""

    def __init__(self, handled: Event):
        super().__init__()
        self.handled = handled


class InputQueue:
    """The order of inputs, which Textual 8.2 does not preserve: a key bubbles up before its binding acts on the focused widget.

    In a burst of keys on a busy machine, letters would overtake an earlier backspace, or go to the field before an earlier tab
    (tests/ui/test_keys.py, test_typed_text_stays_in_order_and_survives_the_detection_of_gpus and
    test_queued_keys_go_to_the_widget_that_earlier_keys_focused).
    """

    def __init__(self, app: App[Any], deliver: Callable[[Event], Awaitable[None]], show: Callable[[str], None]):
        """`deliver` passes an event to the focused widget; `show` shows a message."""
        self._app = app
        self._deliver = deliver
        self._show = show
        self._inputs: deque[Event] = deque()  # the first one is being handled
        self._awaited: MessagePump = app  # receiver of the first input
        self._sent = False  # False while the first input waits for a screen to open
        self._entered: Screen[Any] | None = None  # receiver of the last input
        self.stuck: MessagePump | None = None  # did not handle an input in time; the queue ignores it until it does
        self.key_since = 0.0
        self._answered = 0.0  # time at which the last dialog closed
        self._row = 0  # number of keys in a row that began with a letter
        self._last: Key | None = None  # the last key
        self._in_word: Event | None = None  # the last key if it continues a typed word
        self._held: HeldAction | None = None

    def __len__(self) -> int:
        return len(self._inputs) + (self._held is not None)

    def holds(self, row: Action, act: Act) -> bool:
        """Return False if the action of the present key may run now, as most may.

        A letter's action runs after WAIT_SECONDS, or before the next key, unless that continues a word. The keys of a typed
        word have no effect; a repeated one has.
        """
        key = self._inputs[0] if self._inputs else None
        if not row.deliberate or not isinstance(key, Key) or not key.is_printable:
            return False
        if key is self._in_word:
            self._show(f"{row.description}{IN_WORD}")
        elif (key.character or "").isalpha():
            self._held = HeldAction(row.description, act, self._app.set_timer(WAIT_SECONDS, self._perform_held))
            self._show(f"{row.description}…")
        return self._held is not None or key is self._in_word

    async def _perform_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.timer.stop()
            await held.act()

    async def _note_key(self, key: Key) -> None:
        """Note if the key continues a typed word: a letter after another one, or a digit after two letters or a held action.

        The held action of the word's first letter is then dropped. A repeated key continues no word.
        """
        character, held, last, self._last = key.character or "", self._held, self._last, key
        soon = last is not None and key.key != last.key and key.time - last.time < ROW_SECONDS
        self._row = self._row + 1 if soon and self._row and key.is_printable else int(character.isalpha())
        in_word = self._row > 1 and (character.isalpha() or held is not None or self._row > 2)
        if held is not None and in_word and character.isalnum():
            held.timer.stop()
            self._held = None
            self._app.call_later(self._show, f"{held.title}{IN_WORD}")  # the action of this key may remove messages
        await self._perform_held()
        self._in_word = key if in_word else None

    async def take(self, event: Event) -> None:
        unqueued = isinstance(event, MouseEvent) and not self._inputs
        if unqueued or event.is_forwarded or not isinstance(event, InputEvent | Paste):
            if not event.is_forwarded:
                self._let_scroll(event)
            await self._send(event)
        elif not (isinstance(event, Key) and event.time < self._answered):  # drop keys pressed for a dialog that has closed
            self._inputs.append(event)
            if len(self._inputs) == 1:
                await self._handle()
            else:
                await self.give_up()

    async def _send(self, event: Event) -> None:
        """Deliver an event, but no press on a widget that was just removed: Textual 8.2 would need the widget's parent."""
        if isinstance(event, MouseDown):
            pressed, _ = self._app.screen.get_widget_and_offset_at(event.x, event.y)
            if pressed is not None and not isinstance(pressed, Screen) and pressed.parent is None:
                return
        await self._deliver(event)

    def _let_scroll(self, event: Event) -> None:
        """Let the user scroll away from the widgets that the screen holds in view."""
        if isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp) and isinstance(self._app.screen, Frame):
            self._app.screen.sight.release()

    async def _handle(self) -> None:
        """Send the first input to the focused widget, once the screen that the previous input opened is ready."""
        if isinstance(self._inputs[0], Key) and self._inputs[0].key == "enter":
            await searched(self._app.screen)
            if not self._inputs:  # the palette was closed during the search
                return
        first, self.key_since, screen, focused = self._inputs[0], time.monotonic(), self._app.screen, self._app.focused
        self._sent = screen is self._entered or focused is not None
        self._entered = screen
        self._awaited = focused or screen if self._sent else screen
        if self._sent:
            if isinstance(first, Key):
                await self._note_key(first)
            self._let_scroll(first)
            await self._send(first)
        if not self._awaited.post_message(Handled(first)):
            self.handled(first)

    def arrived(self, message: Handled) -> None:
        """Handle the message that follows an input."""
        self.stuck = None
        self.handled(message.handled)

    def handled(self, first: Event) -> None:
        if self._inputs and self._inputs[0] is first:
            self._app.call_later(self._go_on, first)  # after a change of focus, which also uses call_later()

    async def _go_on(self, first: Event) -> None:
        if self._inputs and self._inputs[0] is first:
            if self._sent:
                self._inputs.popleft()
            if self._inputs:
                await self._handle()

    def clear(self) -> None:
        """Drop all inputs."""
        self._inputs.clear()

    def dialog_answered(self) -> None:
        """Drop the keys that were pressed for a dialog before it closed, including those that have not arrived yet."""
        self._answered = Event().time  # the clock of Key.time
        self.clear()

    async def give_up(self) -> None:
        """Continue with the next input if the receiver of the first one was removed or is stuck."""
        detached, waited_on = not self._awaited.is_attached, self._awaited is self.stuck
        if self._inputs and (detached or waited_on or time.monotonic() > self.key_since + KEY_STUCK_AFTER):
            self.stuck = None if detached else self._awaited
            await self._go_on(self._inputs[0])
