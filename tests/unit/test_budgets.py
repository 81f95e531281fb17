"""Line budgets: no package grows past the number in pyproject.toml."""

import tomllib
from pathlib import Path

import pytest
from processes import ROOT

BUDGETS: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["fwtui"]["budgets"]


def lines(folder: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


@pytest.mark.parametrize("name", BUDGETS)
def test_no_folder_exceeds_its_budget(name: str) -> None:
    if name == "program":
        count = lines(ROOT / "fwtui") + lines(ROOT / "kernels")
    else:
        count = lines(ROOT / name)
    assert count <= BUDGETS[name], f"{name} has {count:,} lines; CONTRIBUTING.md says how to raise a budget"


def test_every_package_has_a_budget_and_every_file_is_short() -> None:
    packages = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("fwtui/*/__init__.py")}
    assert packages | {"kernels", "tests", "program"} == set(BUDGETS)
    files = [path for root in ("fwtui", "kernels", "tests") for path in (ROOT / root).rglob("*.py")]
    assert not {path.name: len(text) for path in files if len(text := path.read_text(encoding="utf-8").splitlines()) > 450}
