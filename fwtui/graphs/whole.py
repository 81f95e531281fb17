"""A file that is whole or not there at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fwtui.errors import Refused
from fwtui.sessions.folders import why
from fwtui.text import clean


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file beside the path that takes its place when everything is written; whatever was there stays till then.

    Raises Refused where the disk says no.
    """
    out = Path(path)
    name = clean(out.name)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{out.name[:100]}.", dir=out.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, out)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"{name} cannot be written: {why(error)}; choose another place") from None


def _umask() -> int:
    """What a file that is made in the usual way would not be allowed to be."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
