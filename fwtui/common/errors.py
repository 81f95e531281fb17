"""Errors caused by the user, the machine or a damaged file."""


class Refused(ValueError):
    """A user's mistake in one sentence: the value, the limit, the way out. Exit code 2 on the command line."""


class NoGpu(Refused):
    """What was asked for needs a GPU that is not here. Exit code 3 on the command line."""


class Failed(RuntimeError):
    """A process that computed for this program died or failed; one sentence. Exit code 4 on the command line."""


class Corrupt(ValueError):
    """Bytes that are not a whole, undamaged line of a session."""


def why(error: Exception) -> str:
    """The reason from an operating system's error, without numbers and paths: "no space left on device"."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]
