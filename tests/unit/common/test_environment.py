"""What the program knows of compiled code that it kept."""

from __future__ import annotations

import os
import time
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


def test_only_what_other_versions_compiled_long_ago_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    environment.cache_folder.cache_clear()
    try:
        own = environment.cache_folder()
        for name, age in (("old", 40), ("young", 1), (own.name, 40)):
            file = own.parent / name / "kernels_1" / "a.nbi"
            file.parent.mkdir(parents=True)
            file.write_bytes(b"12345")
            for path in (file, file.parent, file.parent.parent):
                then = time.time() - age * 86400
                os.utime(path, (then, then))
        assert environment.forget_old_editions() == 5
        assert {folder.name for folder in own.parent.iterdir()} == {"young", own.name}
        assert environment.forget_old_editions() == 0
        monkeypatch.setattr(Path, "iterdir", lambda folder: iter([tmp_path / "gone"]))
        assert environment.forget_old_editions() == 0, "another process has removed it meanwhile"
    finally:
        environment.cache_folder.cache_clear()
