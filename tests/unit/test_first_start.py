"""Errors of `make` before it starts, and the versions that its checks install."""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from processes import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PYTHON=no-such-python"], "there is no no-such-python here; name a Python: make PYTHON=python3.12 run"),
        (["PYTHON=false"], "fwtui needs Python 3.11 or newer; name one: make PYTHON=python3.12 run"),
        (
            ["PYTHON=true", "VENV=/dev/null/venv"],
            "this folder cannot be written to; name another for the environment: make VENV=",
        ),
        (["PYTHON=true"], "true has no working venv; on Debian and Ubuntu run: sudo apt install python3-venv"),
    ],
)
def test_make_names_a_missing_tool_in_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    command = ["make", "--no-print-directory", "run", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # make may run this test
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("making ")]
    assert done.returncode == 2 and len(lines) == 1 and lines[0].startswith(said), done


def test_the_constraints_have_a_version_of_all_that_the_checks_install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: [Requirement(line) for line in lines] for name, lines in project["optional-dependencies"].items()}

    def needed(requirements: list[Requirement]) -> Iterator[Requirement]:
        for wanted in requirements:
            if wanted.name == "fwtui":
                yield from needed([one for extra in wanted.extras for one in extras[extra]])
            else:
                yield wanted

    fixed: dict[str, list[Requirement]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        one = Requirement(line)
        assert str(one.specifier).startswith("==") and one.url is None, line
        fixed.setdefault(one.name, []).append(one)
    for wanted in needed([*map(Requirement, project["dependencies"]), *extras["dev"]]):
        for one in fixed[wanted.name]:
            (version,) = (bound.version for bound in one.specifier)
            assert wanted.specifier.contains(version), f"{one} is not {wanted}: make constraints"
