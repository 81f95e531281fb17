"""Each test begins like a process that has solved nothing; and a graph to solve."""

from pathlib import Path

import pytest

from fwtui.solver import warm


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> warm.SmallGraphCode:
    everyday = warm.SmallGraphCode(lambda: None)
    monkeypatch.setattr(warm, "everyday", everyday)
    return everyday


@pytest.fixture
def towns(tmp_path: Path) -> str:
    """The name of a file of roads."""
    path = tmp_path / "towns.csv"
    path.write_text("from,to,weight\nBerlin,Hamburg,289\nBerlin,Munich,585\nHamburg,Cologne,430\nCologne,Munich,575\n")
    return str(path)
