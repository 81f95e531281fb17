"""Replacements for a session's child process and for a tool of NVIDIA's."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from own_files import write_program

from fwtui.common.child_process import request_line
from fwtui.live.event_child import EventChild
from fwtui.stream import codec, events, requests
from fwtui.stream.codec import Line

Answer = Callable[[Any], Iterable[events.Event]]


class StubChild:
    """A child of a live session without a process: `answer` makes the events of a request at once."""

    answer: Answer

    def __init__(self, module: str, arguments: Sequence[str], origin: float, environment: Mapping[str, str] | None = None):
        self.module, self.arguments, self.origin = module, arguments, origin
        self.lines: deque[Line] = deque()
        self.asked: list[Any] = []
        self.exit_code: int | None = None
        self.pid = 2**22  # of no process
        self.last_output = ""
        self.workers = (self.pid,)

    death, killed, after_death, death_fault = (
        EventChild.death,
        EventChild.killed,
        EventChild.after_death,
        EventChild.death_fault,
    )
    called, excess, printed, last_output_time, mark = EventChild.called, "", 0, 0.0, "a stub"
    exceeds = EventChild.exceeds

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
    """A child that stores its requests, as a sampler gets them, and answers nothing."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.heard: list[Struct | bytes] = []

    def send(self, request: Struct | bytes) -> None:
        self.heard.append(request)


def answering(answer: Answer) -> Any:
    """Return a class of children with this answer."""
    return type("Answering", (StubChild,), {"answer": staticmethod(answer)})


_TOOL = """import json, pathlib, sys
arguments = sys.argv[1:]
told = pathlib.Path({folder!r})
calls = len(list(told.glob("call-*")))
(told / f"call-{{calls}}").write_text(json.dumps(arguments))
answer = json.loads((told / "answers").read_text())[calls]
pathlib.Path(arguments[arguments.index("--log-file") + 1]).write_text(answer["log"])
sys.stdout.write(answer.get("stdout", ""))
sys.stderr.write(answer.get("stderr", ""))
if answer.get("sleep"):
    import time
    time.sleep(60)
sys.exit(answer.get("code", 0))
"""


class FakeTool:
    """A tool with scripted output that stores its arguments."""

    def __init__(self, folder: Path, name: str = "ncu") -> None:
        self.folder = folder
        self.path = folder / name
        write_program(self.path, _TOOL.format(folder=str(folder)))

    def answers(self, *answers: dict[str, Any]) -> None:
        (self.folder / "answers").write_text(json.dumps(answers))

    def call(self, index: int = 0) -> list[str]:
        return json.loads((self.folder / f"call-{index}").read_text())
