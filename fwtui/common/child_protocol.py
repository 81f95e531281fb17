"""The side of a child process: requests from the one that started it, and answers to it (the other side: child_process).

A request is a JSON object on a line of stdin; an answer goes to what was stdout, where nothing that is printed can get.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

import msgspec

from fwtui.common.errors import Refused
from fwtui.common.signals import end_with_parent
from fwtui.common.streams import report_refusal
from fwtui.common.text import MAX_LENGTH

Request = TypeVar("Request")
EXHAUSTED = "the memory of this machine is exhausted; choose a smaller n"


class Parent:
    """The process that started this one, which ends with it. One object for each process: it takes stdin and stdout.

    What is printed goes to stderr; nowhere if `quiet`, and what goes to stderr too.
    """

    def __init__(self, quiet: bool = False):
        end_with_parent()
        faulthandler.enable()
        warnings.simplefilter("ignore")
        self.requests = os.fdopen(os.dup(0), "rb")
        self.descriptor = os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        if quiet:
            os.dup2(nowhere, 2)
        os.dup2(2, 1)

    def send(self, answer: msgspec.Struct) -> None:
        self.write(msgspec.json.encode(answer) + b"\n")

    def write(self, data: bytes | memoryview) -> None:
        """Raises BrokenPipeError once the other process reads no more."""
        write_all(self.descriptor, data)

    def leave(self, code: int = 0) -> NoReturn:
        """End this process at once, whatever threads a user's file has started, and whatever state its GPU is in."""
        sys.stderr.flush()
        os._exit(code)


def traceback_end() -> str:
    """The end of the traceback of the error that is being handled, where its cause is: as much of it as an event holds."""
    return traceback.format_exc()[-MAX_LENGTH:]


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of it, however little a pipe takes at once. Raises BrokenPipeError once nobody reads."""
    while data:
        data = data[os.write(descriptor, data) :]


def serve(
    kind: type[Request],
    handler: Callable[[Request, Parent], object],
    *,
    ready: Callable[[], object] = lambda: None,
    quiet: bool = False,
    requests: Iterable[bytes] | None = None,
    too_large: str = EXHAUSTED,
) -> NoReturn:
    """Be a child process: have each request handled, in turn, and end after the last one, or when one fails.

    `ready()` is called before the first one, for which a process may wait (Standby). Refused is told in one sentence on
    stderr, as MemoryError by `too_large`. A handler that raises SystemExit ends the process in the interpreter's own way.
    """
    parent = Parent(quiet)
    try:
        ready()
        for line in parent.requests if requests is None else requests:
            handler(msgspec.json.decode(line, type=kind), parent)
    except SystemExit:
        raise
    except (Refused, MemoryError) as error:
        parent.leave(report_refusal(error, too_large))
    except BrokenPipeError:  # the reader has gone
        parent.leave()
    except BaseException:
        traceback.print_exc()
        parent.leave(1)
    parent.leave()
