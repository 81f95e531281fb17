"""Small files and pipes that a user names: bounded reads, and detection of changes."""

from __future__ import annotations

import errno
import os
import select
import stat
import tomllib
from typing import Any

from fwtui_kernels.regular_file import open_at_once

# characters: tomllib needs seconds for a key of thousands of parts, and Python parses no number of 4,300 digits
LONGEST_LINE = 4096


def read_beginning(path: str | os.PathLike[str], most: int, patience: float = 1.0) -> bytes:
    """Return up to `most` bytes of a file or a pipe. Raises OSError, also for a pipe that is silent for `patience` seconds."""
    with open(path, "rb", buffering=0, opener=open_at_once) as file:
        if not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            return file.read(most)
        poll, content, part = select.poll(), b"", b"unread"
        poll.register(file.fileno(), select.POLLIN)
        while part and len(content) < most:
            if not poll.poll(1000 * patience):
                raise TimeoutError(errno.ETIMEDOUT, "nobody writes into it")
            part = os.read(file.fileno(), most - len(content))
            content += part
        return content


def file_version(status: os.stat_result) -> tuple[int, ...]:
    """Return numbers that change with every write, even if the size and the modification time stay: nothing can set a ctime."""
    return status.st_ctime_ns, status.st_ino, status.st_size


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises only ValueError, with the reason."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"line {number} has more than {LONGEST_LINE:,} characters")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its tables are nested too deeply") from None
