"""Standard streams that are closed, full, abandoned by their reader, or in a limited encoding."""

from __future__ import annotations

import codecs
import os
import signal
import sys
from collections.abc import Callable

from fwtui.common.errors import Failed, NoGpu, Refused
from fwtui.common.exit_codes import NO_GPU, OK, SIGNALLED, USAGE, WORKER_DIED, WRONG
from fwtui.common.text import clean

# what tables and maps print, for a terminal whose encoding has only ASCII
_ASCII = {
    **dict(zip("░▒▓█·×²³–—", ".:%#-x23--", strict=True)),
    **{"±": "+-", "…": "..", "→": "->", "≤": "<=", "≥": ">=", "✓": "ok"},
}


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Signs in ASCII, and ? for any other character that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def ready_streams() -> None:
    """Discard output to a closed stdout, and replace what the terminal's encoding lacks: no result is lost over one character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif hasattr(stream, "reconfigure"):
            codecs.register_error("fwtui.ascii", _in_ascii)
            stream.reconfigure(errors="fwtui.ascii")


def flushed(code: int) -> int:
    """The exit code once everything printed is written: left to the interpreter, its last flush could fail without words."""
    try:
        sys.stdout.flush()
        return code
    except OSError as error:
        code = unwritten(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        return code


def unwritten(error: OSError) -> int:
    """Say why an output could not be written; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        # the reader has gone; nothing more can be written, not even by the interpreter's last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGNALLED + signal.SIGPIPE
    where = f" {clean(str(error.filename))}" if error.filename else " the output"
    print(f"fwtui: writing{where} failed: {error.strerror or error}", file=sys.stderr)
    return WRONG


def refused(error: Refused | MemoryError, too_large: str) -> int:
    """Say in one sentence on stderr what is wrong, `too_large` for memory; returns the exit code."""
    print(f"fwtui: {clean(str(error)) if isinstance(error, Refused) else too_large}", file=sys.stderr)
    return NO_GPU if isinstance(error, NoGpu) else USAGE


def reported(work: Callable[[], object], too_large: str) -> int:
    """Do it, and return the exit code; a mistake, or `too_large` for memory, becomes one sentence on stderr."""
    ready_streams()
    try:
        work()
        sys.stdout.flush()
    except (Refused, MemoryError) as error:
        return refused(error, too_large)
    except Failed as failure:
        print(f"fwtui: {clean(str(failure))}", file=sys.stderr)
        return WORKER_DIED
    except OSError as error:
        return unwritten(error)
    return OK
