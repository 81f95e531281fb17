"""Standard streams that are closed, full, abandoned by their reader, or in a limited encoding."""

from __future__ import annotations

import codecs
import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO

from fwtui.common.errors import Failed, NoGpu, Refused, os_error_reason
from fwtui.common.exit_codes import NO_GPU, OK, SIGNALLED, USAGE, WORKER_DIED, WRONG
from fwtui.common.text import sanitise

# what tables and maps print, for a terminal whose encoding has only ASCII
_ASCII = {
    **dict(zip("░▒▓█·×²³–—", ".:%#-x23--", strict=True)),
    **{"±": "+-", "…": "..", "→": "->", "≤": "<=", "≥": ">=", "✓": "ok"},
}


# what a write to a stream ends with; an error of anything else keeps its own sentence
_OF_OUTPUT = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Signs in ASCII, and ? for any other character that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def prepare_streams() -> None:
    """Stand in for closed streams, and replace what the terminal's encoding lacks: no result is lost over one character.

    A closed stdin is empty, and a closed stdout takes nothing, which is an error once something is written.
    """
    for name, mode, way in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, way), mode))
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            codecs.register_error("fwtui.ascii", _in_ascii)
            stream.reconfigure(errors="fwtui.ascii")


def flush_output(code: int) -> int:
    """The exit code once everything printed is written: left to the interpreter, its last flush could fail without words."""
    try:
        sys.stdout.flush()
        return code
    except OSError as error:
        return report_write_error(error)


def report_write_error(error: OSError) -> int:
    """Say why an output could not be written; returns the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        _empty(sys.stdout)
    if isinstance(error, BrokenPipeError):  # the reader has gone
        return SIGNALLED + signal.SIGPIPE
    if error.errno in (errno.EMFILE, errno.ENFILE):
        report("too many files are open; close some, or raise the limit, which `ulimit -n` shows")
        return USAGE
    if error.filename is not None:
        report(f"{error.filename} cannot be used: {os_error_reason(error)}")
        return WRONG
    failed = "writing the output failed" if error.errno in _OF_OUTPUT else "the system refused a call"
    report(f"{failed}: {error.strerror or error}")
    return WRONG


def report(text: str) -> None:
    """A sentence on stderr. Where that takes nothing, the exit code alone has to tell."""
    try:
        print(f"fwtui: {sanitise(text)}", file=sys.stderr, flush=True)
    except OSError:
        _empty(sys.stderr)


def _empty(stream: TextIO) -> None:
    """What the stream holds, and what comes, goes nowhere, so that the interpreter's last flush does not fail too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def report_refusal(error: Refused | MemoryError, too_large: str) -> int:
    """Say in one sentence on stderr what is wrong, `too_large` for memory; returns the exit code."""
    report(str(error) if isinstance(error, Refused) else too_large)
    return NO_GPU if isinstance(error, NoGpu) else USAGE


def run_reporting_errors(work: Callable[[], object], too_large: str) -> int:
    """Do it, and return the exit code; a mistake, or `too_large` for memory, becomes one sentence on stderr."""
    prepare_streams()
    try:
        work()
        sys.stdout.flush()
    except (Refused, MemoryError) as error:
        return report_refusal(error, too_large)
    except Failed as failure:
        report(str(failure))
        return WORKER_DIED
    except OSError as error:
        return report_write_error(error)
    return OK
