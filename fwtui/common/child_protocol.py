"""The child's side of the protocol: requests from the parent process, and answers to it (parent's side: child_process).

A request is a JSON object on a line of stdin. Answers go to the original stdout, which `print` cannot reach.
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
from fwtui.common.streams import report_error
from fwtui.common.text import MAX_LENGTH

Request = TypeVar("Request")
EXHAUSTED = "the memory of this machine is exhausted; choose a smaller n"


class Parent:
    """The process that started this one and ends with it. It owns stdin and stdout: one object for each process.

    Printed text goes to stderr; with `quiet`, printed text and stderr are discarded.
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
        """Write to the parent. Raises BrokenPipeError if it no longer reads."""
        write_all(self.descriptor, data)

    def leave(self, code: int = 0) -> NoReturn:
        """End this process at once, even if a user's file has started threads or the GPU hangs."""
        sys.stderr.flush()
        os._exit(code)


def traceback_end() -> str:
    """Return the end of the current exception's traceback, cut to the length that an event holds."""
    return traceback.format_exc()[-MAX_LENGTH:]


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes despite partial writes to a pipe. Raises BrokenPipeError once nobody reads."""
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
    """Handle the requests in order; return after the last one, or after the first that fails.

    `ready()` is called before the first request (see Supervised). Refused prints its sentence on stderr; MemoryError prints
    `too_large`. A handler that raises SystemExit ends the process through the interpreter's normal shutdown.
    """
    parent = Parent(quiet)
    try:
        ready()
        for line in parent.requests if requests is None else requests:
            handler(msgspec.json.decode(line, type=kind), parent)
    except SystemExit:
        raise
    except (Refused, MemoryError) as error:
        parent.leave(report_error(error, too_large))
    except BrokenPipeError:  # the parent has closed the pipe
        parent.leave()
    except BaseException:
        traceback.print_exc()
        parent.leave(1)
    parent.leave()
