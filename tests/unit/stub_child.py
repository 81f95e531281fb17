"""A child process that is none: answers requests with events at once, in place of fwtui.live.child.Child."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fwtui.common.child_process import request_line
from fwtui.live.child import EventChild
from fwtui.stream import codec, events, requests
from fwtui.stream.codec import Line

Answer = Callable[[Any], Iterable[events.Event]]


class StubChild:
    """What Live needs of a Child; `answer` makes the events of a request."""

    answer: Answer

    def __init__(self, module: str, arguments: Sequence[str], origin: float, environment: Mapping[str, str] | None = None):
        self.module, self.arguments, self.origin = module, arguments, origin
        self.lines: deque[Line] = deque()
        self.asked: list[Any] = []
        self.exit_code: int | None = None
        self.pid = 2**22  # of no process
        self.last_words = ""
        self.workers = (self.pid,)

    death, killed, next = EventChild.death, EventChild.killed, EventChild.next
    called, excess, printed, last_heard, mark = EventChild.called, "", 0, 0.0, "a stub"

    @property
    def gone(self) -> bool:
        return self.exit_code is not None

    def send(self, request: Struct | bytes) -> None:
        self.asked.append(requests.decode(request_line(request)))
        for event in type(self).answer(self.asked[-1]):
            self.lines.append(codec.as_line(event))

    def kill(self) -> None:
        self.exit_code = -9

    def hang_up(self) -> None:
        pass

    def close(self, grace: float = 0.0) -> None:
        self.exit_code = self.exit_code or 0


class HeardChild(StubChild):
    """One that is sent bytes, as a sampler is, and answers nothing."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.heard: list[Struct | bytes] = []

    def send(self, request: Struct | bytes) -> None:
        self.heard.append(request)


def answering(answer: Answer) -> Any:
    """A kind of child that answers so."""
    return type("Answering", (StubChild,), {"answer": staticmethod(answer)})
