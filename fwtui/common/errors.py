"""Errors caused by the user, the machine or a damaged file."""

from collections.abc import Iterator
from contextlib import contextmanager

THREAD_ERROR = "can't start new thread"  # Python's text
NO_THREAD = "no thread can be started; end other programs, or raise the limit, which `ulimit -u` shows"


class Refused(ValueError):
    """A user's mistake in one sentence: the value, the accepted range, the fix. Exit code 2 on the command line."""


class NoGpu(Refused):
    """A GPU is required and none is available. Exit code 3 on the command line."""


class Failed(RuntimeError):
    """A process that computed for this program died or failed; one sentence. Exit code 4 on the command line."""


class Corrupt(ValueError):
    """Bytes that are not a whole, undamaged line of a session."""


def os_error_reason(error: Exception) -> str:
    """Return the operating system's reason without numbers and paths: "no space left on device"."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]


@contextmanager
def as_refused(what: str, way: str = "", *also: type[Exception]) -> Iterator[None]:
    """Convert OSError, and errors of the given kinds, to Refused: the failed action, the reason, the fix."""
    try:
        yield
    except (OSError, *also) as error:
        raise Refused(f"{what}: {os_error_reason(error)}{f'; {way}' * bool(way)}") from None
