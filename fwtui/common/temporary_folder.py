"""A private temporary folder, removed at the end of the block or by a signal; after a kill the next call removes it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from fwtui.common.errors import as_refused
from fwtui.common.signals import undo_on_signal

_NAME = re.compile(r"fwtui-(\d+)-\w+")  # the number is the process id of the owner


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder and remove it after the block. Raises Refused if no temporary folder can be written."""
    with as_refused("the temporary folder cannot be created", "set TMPDIR to a folder that you can write to"):
        _remove_abandoned(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=f"fwtui-{os.getpid()}-"))
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    try:
        with undo_on_signal(remove):
            yield folder
    finally:
        remove()


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of this user whose owners have ended."""
    for folder in parent.glob("fwtui-*"):
        with suppress(OSError):
            match = _NAME.fullmatch(folder.name)
            if match and folder.lstat().st_uid == os.getuid() and not _runs(int(match[1])):
                shutil.rmtree(folder, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
