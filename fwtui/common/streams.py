"""Standard streams that are closed, full, abandoned by their reader, or limited to an encoding."""

from __future__ import annotations

import codecs
import errno
import os
import signal
import sys
from typing import TextIO

from fwtui.common.errors import Failed, NoGpu, Refused, os_error_reason
from fwtui.common.exit_codes import NO_GPU, SIGNALLED, USAGE, WORKER_DIED, WRONG
from fwtui.common.text import sanitise

# ASCII forms of the characters in tables and maps
_ASCII = {
    **dict(zip("░▒▓█·×²³–—", ".:%#-x23--", strict=True)),
    **{"±": "+-", "…": "..", "→": "->", "≤": "<=", "≥": ">=", "✓": "ok"},
}
# error numbers of failed writes; other errors have their own message
_OF_OUTPUT = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace signs by their ASCII form, and other characters that an encoding lacks by ?."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def prepare_streams() -> None:
    """Replace closed streams, and characters that the terminal's encoding lacks: no result is lost over one character.

    A closed stdin becomes empty. Writing to a closed stdout is an error.
    """
    for name, mode, way in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, way), mode))
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            codecs.register_error("fwtui.ascii", _in_ascii)
            stream.reconfigure(errors="fwtui.ascii")


def flush_output(code: int) -> int:
    """Flush all output and return the exit code; the interpreter's final flush could fail without a message."""
    try:
        sys.stdout.flush()
        return code
    except OSError as error:
        return report_write_error(error)


def report_write_error(error: OSError) -> int:
    """Report why an output could not be written; return the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        _empty(sys.stdout)
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
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
    """Print a sentence on stderr; if that fails, only the exit code reports the error."""
    try:
        print(f"fwtui: {sanitise(text)}", file=sys.stderr, flush=True)
    except OSError:
        _empty(sys.stderr)


def _empty(stream: TextIO) -> None:
    """Discard the stream's buffer and all later output, so that the interpreter's final flush cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def report_error(error: Exception, too_large: str) -> int:
    """Report a mistake, a failure, or `too_large` for MemoryError in one sentence; return the exit code. Raise other errors."""
    if isinstance(error, Refused | MemoryError):
        report(str(error) if isinstance(error, Refused) else too_large)
        return NO_GPU if isinstance(error, NoGpu) else USAGE
    if isinstance(error, Failed):
        report(str(error))
        return WORKER_DIED
    if isinstance(error, OSError):
        return report_write_error(error)
    raise error
