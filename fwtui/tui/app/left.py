"""How the dashboard was left: what it begins with the next time. One small file; what cannot be read was never written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.sessions.folders import own_folder

VERSION = 1
MOST_BYTES = 1 << 20


class Left(Struct, frozen=True, kw_only=True):
    """`form` is what the form said; it holds as long as the settings ask for `usual` by themselves."""

    version: int = VERSION
    usual: Experiment | None = None
    form: Experiment | None = None
    own_files: tuple[str, ...] = ()  # kernels of the user's own that were chosen, the last one first
    course: str = ""  # name of the step that was open last
    session: str = ""  # path of the last one in which something ran
    baseline: int | None = None  # number of its run

    def begins_with(self, usual: Experiment) -> Experiment:
        """What the form says first, where the settings ask for `usual`."""
        return self.form if self.form is not None and self.usual == usual else usual


def path() -> Path:
    return own_folder().with_name("left.json")


def load() -> Left:
    """What was written last, or nothing."""
    with suppress(OSError, ValueError, RecursionError):
        if path().stat().st_size <= MOST_BYTES:
            left = msgspec.json.decode(path().read_bytes(), type=Left)
            if left.form is not None:
                try:
                    kernel_named(left.form.kernel)
                except Refused:  # one of another version, or of the user's own, whose file was not asked for here
                    left = msgspec.structs.replace(left, form=None)
            return left if left.version == VERSION else Left()
    return Left()


def save(left: Left) -> None:
    """Write it, all or nothing; a folder that takes nothing remembers nothing, and that is all."""
    with suppress(OSError, Refused):
        path().parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path()) as file:
            file.write(msgspec.json.encode(left))
