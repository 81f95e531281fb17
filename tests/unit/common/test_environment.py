"""What the program knows of compiled code that it kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwtui.common import environment
from fwtui.experiment.experiment import defaults, kernel_named


def test_where_nothing_was_compiled_a_newcomer_begins_with_what_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "cache_folder", lambda: tmp_path)
    assert not environment.compiled_before()
    assert not kernel_named(defaults(False, environment.compiled_before()).kernel).compiles
    (tmp_path / "kernels_1").mkdir()
    (tmp_path / "kernels_1" / "generate_cpu._fill-50.py311.nbi").touch()
    assert not environment.compiled_before()
    (tmp_path / "kernels_1" / "k20_tiled_cpu.place-27.py311.nbi").touch()
    assert environment.compiled_before() and kernel_named(defaults(False, environment.compiled_before()).kernel).compiles
