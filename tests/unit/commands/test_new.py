"""`fwtui new`: what it writes works, is as the rung that it comes from, and replaces nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui_kernels import registry
from fwtui_kernels.own import check, load
from fwtui_kernels.plan import Kernel, Shape
from fwtui_kernels.reference import relax, relaxations


def written(folder: Path, *words: str) -> Kernel:
    assert main(["new", str(folder / "mine.py"), *words]) == 0
    kernel = load(folder / "mine.py", "mine")
    check(kernel, folder / "mine.py")
    return kernel


@pytest.mark.parametrize("rung", registry().values(), ids=lambda kernel: kernel.id)
def test_the_copy_of_a_rung_has_its_plan_and_its_choices_and_another_name(tmp_path: Path, rung: Kernel) -> None:
    mine = written(tmp_path, "--from", rung.id)
    assert (mine.id, mine.title, mine.preference) == ("mine", "mine", 0)
    for name in ("backend", "phases", "dtypes", "tiles", "default_tile", "options", "launch_modes", "memories", "summary"):
        assert getattr(mine, name) == getattr(rung, name), name
    shape = Shape(19, 8 if rung.tiles else 1, rung.dtypes[0], options=rung.defaults)
    for stepwise in (False, True):
        assert list(mine.plan(shape, stepwise)) == list(rung.plan(shape, stepwise))
    assert f'id="{rung.id}"' not in (tmp_path / "mine.py").read_text()


@pytest.mark.parametrize("words", [(), ("--cuda",), ("--cuda", "--from", "tile-32"), ("--cuda", "--from", "tile-64")])
def test_what_is_written_has_a_plan_that_computes_all_distances(tmp_path: Path, words: tuple[str, ...]) -> None:
    from distances import floyd_warshall, random_matrix

    mine = written(tmp_path, *words)
    shape = Shape(19, 8 if mine.tiles else 1)
    plan = list(mine.plan(shape, True))
    matrix = random_matrix(shape.padded, 1)
    expected = floyd_warshall(matrix)
    for index, k in relaxations(mine, plan, shape.padded):
        relax(matrix, mine.places(plan[index].writes), k)
    assert (matrix == expected).all()
    assert mine.simulates and (tmp_path / "mine.cu").exists() == bool(words)


def test_folders_and_macros_are_written_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "it's").mkdir()
    words = ("--cuda", "--include", "common", "--include", "it's", "-D", "UNROLL=4", "-D", "FAST")
    build = written(tmp_path, *words).build
    assert build.__globals__["INCLUDE"] == ("common", "it's")  # type: ignore[attr-defined]
    assert build.__globals__["DEFINE"] == {"UNROLL": "4", "FAST": "1"}  # type: ignore[attr-defined]


def test_a_full_disk_leaves_no_file_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"ulimit -f 0; exec '{sys.executable}' -B -P -m fwtui new mine.py --cuda"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "cannot be written: file too large; choose another place" in done.stderr
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.py").write_text("mine")
    assert main(["new", str(tmp_path / "mine.py"), "--cuda"]) == 2
    assert "mine.py exists already and is not overwritten; choose another name" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"] and (tmp_path / "mine.py").read_text() == "mine"
