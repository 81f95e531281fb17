"""A private temporary folder, removed at the end of the block or by a signal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fwtui.common.errors import as_refused
from fwtui.common.signals import undo_on_signal


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder and remove it after the block. Raises Refused if no temporary folder can be written."""
    with as_refused("the temporary folder cannot be created", "set TMPDIR to a folder that you can write to"):
        folder = TemporaryDirectory(prefix="fwtui-", ignore_cleanup_errors=True)
    with folder, undo_on_signal(folder.cleanup):
        yield Path(folder.name)
