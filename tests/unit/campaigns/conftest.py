"""What several tests of campaigns begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_grading import SMALL


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rubric; the user's settings are elsewhere."""
    (tmp_path / "settings.toml").write_text("")
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "settings.toml"))
    (tmp_path / "r.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path
