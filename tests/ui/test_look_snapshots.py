"""Pictures of the matrix, the presenter and plain characters; see test_snapshots."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scenes
from pressing import SIZES
from test_matrix import slow_run

from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.look import Appearance

Compare = Callable[..., bool]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_presenter(size: tuple[int, int], replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    app = replay_of(scenes.gpu_session())
    app.look = Appearance(presenter=True)
    assert snap_compare(app, terminal_size=size)


def test_plain_characters(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    app = replay_of(scenes.gpu_session(), start=6.5)
    app.plain = True
    assert snap_compare(app, terminal_size=(120, 40))


def test_a_round_of_a_slow_run(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    app = replay_of(slow_run(), start=5.5)
    assert snap_compare(app, terminal_size=(120, 40))
