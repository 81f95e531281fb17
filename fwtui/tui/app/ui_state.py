"""The state of the dashboard across restarts, in one small file; an unreadable file is ignored."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.sessions.folders import own_folder
from fwtui_kernels.regular_file import read_regular

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View

VERSION = 1
MAX_BYTES = 1 << 20


class SavedUiState(Struct, frozen=True, kw_only=True):
    """`form` is the last experiment of the form, `rows` the texts of each screen's form, including invalid ones.

    They are restored only if the default experiment of this machine is still `default`.
    """

    version: int = VERSION
    default: Experiment | None = None
    form: Experiment | None = None
    rows: dict[str, dict[str, str]] = {}
    own_files: tuple[str, ...] = ()  # chosen user kernel files, the last one first
    course: str = ""  # name of the last open step

    def begin(self, view: View, default: Experiment) -> None:
        """Restore the live view, but its form only if the default experiment has not changed."""
        if self.default == default:
            view.experiment, view.rows = self.form or default, self.rows
        view.step, view.own_files = self.course, self.own_files

    def after(self, view: View, default: Experiment) -> SavedUiState:
        """Return the present state of the live view, and save it if it has changed."""
        assert view.source is not None
        rows = {**view.rows, **{place: draft.texts() for place, draft in view.drafts.items()}}
        now = replace(self, default=default, form=view.experiment, rows=rows, course=view.step, own_files=view.own_files)
        if now != self:
            save(now)
        return now


def path() -> Path:
    return own_folder().with_name("left.json")


def load() -> SavedUiState:
    """Return the saved state, or an empty one."""
    with suppress(OSError, ValueError, RecursionError):
        state = msgspec.json.decode(read_regular(path(), MAX_BYTES), type=SavedUiState)
        if state.form is not None:
            try:
                kernel_named(state.form.kernel)
            except Refused:  # a kernel of another version, or a user kernel that is not loaded
                state = replace(state, form=None)
        return state if state.version == VERSION else SavedUiState()
    return SavedUiState()


def save(state: SavedUiState) -> None:
    """Write the state atomically; a folder that cannot be written is ignored."""
    with suppress(OSError, Refused):
        path().parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path(), devices=False) as file:
            file.write(msgspec.json.encode(state))
