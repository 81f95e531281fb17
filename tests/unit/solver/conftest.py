"""Fixtures of `solve`: a process that has not solved anything, and a graph file."""

from pathlib import Path

import pytest

from fwtui.solver import kernel_choice


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "_scipy_has_run", False)


@pytest.fixture
def towns(tmp_path: Path) -> str:
    """Return the path of a file of roads."""
    path = tmp_path / "towns.csv"
    path.write_text("from,to,weight\nBerlin,Hamburg,289\nBerlin,Munich,585\nHamburg,Cologne,430\nCologne,Munich,575\n")
    return str(path)
