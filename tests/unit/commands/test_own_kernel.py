"""User kernels on the command line: created from a rung, described, run, watched, and not executed by commands that only read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from builders import forget_user_kernels
from own_files import TELLS, written
from processes import fwtui

from fwtui.__main__ import main
from fwtui.commands.new import python
from fwtui.experiment.user_kernel_registry import find_kernel_file
from fwtui.machine import trust
from fwtui_kernels import registry
from fwtui_kernels.own import check, load
from fwtui_kernels.plan import Kernel, Shape
from fwtui_kernels.reference import relax, relaxations

QUICK = ("-n", "7", "--repeats", "2", "--telemetry-hz", "0")


@pytest.fixture(autouse=True)
def _nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "settings" / "config.toml"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "config.toml").write_text("")


def test_a_file_of_a_new_folder_runs_only_with_the_users_consent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "hw", more=TELLS)
    assert main(["run", "-k", f"serial,{path}", *QUICK]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "can do anything that Python can do" in said.err
    assert "--trust" in said.err
    assert not path.with_suffix(".ran").exists() and not trust.is_trusted(path)
    trust.trust(path)
    assert trust.is_trusted(path.with_name("other.py")) and not trust.is_trusted(path.parent / "inner" / "other.py")


@pytest.mark.parametrize("sign", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_a_folder_that_was_named_is_trusted(sign: str, tmp_path: Path) -> None:
    named = f"{tmp_path}/hw{sign}{tmp_path}/other"
    trust.trust(Path(f"{named}/mine.py"))
    trust.trust(tmp_path / "more" / "mine.py")
    assert trust.is_trusted(Path(f"{named}/its.py")) and trust.is_trusted(tmp_path / "more" / "its.py")
    assert not any(trust.is_trusted(tmp_path / part / "mine.py") for part in ("hw", "other"))


def test_a_list_that_is_too_long_to_be_read_trusts_no_folder_by_the_start_of_its_name(tmp_path: Path) -> None:
    last = f"{tmp_path}/other"
    others = f"{tmp_path}/first\n".ljust(trust.LARGEST_FILE - len(last) - 1, "x")
    for folder in (*others.split("\n"), f"{last}s"):
        trust.trust(Path(folder) / "mine.py")
    assert trust.is_trusted(tmp_path / "first" / "mine.py") and not trust.is_trusted(tmp_path / "other" / "mine.py")


def test_a_recording_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, session = written(tmp_path / "hw", more=TELLS), tmp_path / "own.fwt.jsonl"
    assert (
        main(["run", "-k", f"serial,{path}", "--baseline", str(path), "--trust", "--record", str(session), "--json", *QUICK]) == 0
    )
    mine, serial = map(json.loads, capsys.readouterr().out.splitlines())
    assert (mine["kernel"], mine["verified"], mine["checksum"]) == ("mine", True, serial["checksum"]), "the baseline runs first"
    assert (mine["speedup"], serial["baseline"]) == (1.0, 1)
    assert str(tmp_path / "hw") not in session.read_text() and '"kind":"source"' not in session.read_text()
    assert trust.is_trusted(path)
    path.with_suffix(".ran").unlink()
    forget_user_kernels()
    monkeypatch.chdir(path.parent)
    for words in (
        ["replay", str(session)],
        ["check", str(session)],
        ["compare", str(session), "--phases"],
        ["export", str(session), "-o", str(tmp_path / "runs.csv")],
        ["list", str(tmp_path)],
        ["render", str(session), "--screen", "explain", "-o", str(tmp_path / "explain.txt")],
    ):
        assert main(words) == 0, (words, capsys.readouterr().err)
    assert not path.with_suffix(".ran").exists()


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])  # the trial of a right one takes long
def test_a_kernel_is_judged_once(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(python(None, "mine"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch()
    assert main(["watch", "mine.py", "--once"]) == 2 and "pass --trust to run it" in capsys.readouterr().err
    if whole:
        right = fwtui(tmp_path, "watch", "mine.py", "--once", "--trust", "--device", "simulator", "--course")
        assert right.returncode == 0, right.stdout + right.stderr
        lines = right.stdout.splitlines()
        ended = lines.index("RIGHT: right in all 15 cases, up to n = 11")
        done = lines.index("+ prompt 1 is done", ended)  # a compiler for GPUs adds the instructions of the kernel before it
        assert lines[0] == "mine.py, save 1" and lines[done - 1] == ""
        assert lines[done + 1].startswith("prompt 2 of 5: Let one block of threads update one tile")
        (plan,) = (
            at for at, text in enumerate(lines) if text.startswith("+ the plan does every relaxation once, and its launches")
        )
        assert plan in (1, 2) and lines[plan + 1] == "+ n = 1, one vertex: right"
        assert "watch mine.py` also checks" in fwtui(tmp_path, "run", "-k", "mine.py", "-n", "8", "--device", "simulator").stderr
    path.write_text(path.read_text().replace("distance[i, k] + distance[k, j]", "distance[i, k] + distance[j, k]"))
    words = ("watch", "mine.py", "--once", "--trust", "--device", "simulator")
    assert main([*words, *([] if whole else ["--json"])]) == 1
    wrong = capsys.readouterr().out
    if whole:
        assert wrong.count("wrong at row ") == 1 and "! n = 3, one less than a block: wrong at row " in wrong
        assert "it began in " in wrong and "cases are wrong, also n = 4, one block; n = 5" in wrong
    else:
        found = json.loads(wrong)
        assert found["file"] == "mine.py" and found["right"] is False and found["seconds"] is None
        first = next(finding for finding in found["findings"] if finding["outcome"] == "wrong")
        assert first["n"] == 3 and first["where"]["n"] == 3 and found["summary"] == first["sentence"]


def copied(file: Path, *words: str) -> Kernel:
    assert main(["new", str(file), *words]) == 0
    kernel = load(path := find_kernel_file(str(file)), "mine")
    check(kernel, path)
    return kernel


@pytest.mark.parametrize("rung", registry().values(), ids=lambda kernel: kernel.id)
def test_the_copy_of_a_rung_has_its_plan_and_its_choices_and_another_name(tmp_path: Path, rung: Kernel) -> None:
    mine = copied(tmp_path / "mine.py", "--from", rung.id)
    assert (mine.id, mine.title, mine.preference) == ("mine", "mine", 0)
    for name in ("backend", "phases", "dtypes", "tiles", "default_tile", "options", "launch_modes", "memories", "summary"):
        assert getattr(mine, name) == getattr(rung, name), name
    shape = Shape(19, 8 if rung.tiles else 1, rung.dtypes[0], options=rung.defaults)
    for stepwise in (False, True):
        assert list(mine.plan(shape, stepwise)) == list(rung.plan(shape, stepwise))
    assert f'id="{rung.id}"' not in (tmp_path / "mine.py").read_text()


@pytest.mark.parametrize("words", ["mine.py", "mine.cu", "mine.cu --from tile-32", "mine.cu --from tile-64"])
def test_a_new_file_has_a_plan_that_computes_all_distances(tmp_path: Path, words: str) -> None:
    from path_checks import floyd_warshall, random_matrix

    file, *rest = words.split()
    mine = copied(tmp_path / file, *rest)
    shape = Shape(19, 8 if mine.tiles else 1)
    plan = list(mine.plan(shape, True))
    matrix = random_matrix(shape.padded, 1)
    expected = floyd_warshall(matrix)
    for index, k in relaxations(mine, plan, shape.padded):
        relax(matrix, mine.places(plan[index].writes), k)
    assert (matrix == expected).all()
    assert (tmp_path / "mine.cu").exists() == (not mine.simulates) == (file == "mine.cu")


def test_cuda_cpp_is_named_by_its_cu_file(tmp_path: Path) -> None:
    python, cu = tmp_path / "mine.py", tmp_path / "mine.cu"
    assert main(["new", str(python)]) == 0 and main(["new", str(cu)]) == 0 and "__global__" in cu.read_text()
    assert [find_kernel_file(str(file)).name for file in (python, cu)] == ["mine.py", "mine.cu.py"]


@pytest.mark.parametrize(
    ("source", "launch", "sentence"),
    [
        ("__global__ void fw(int *d, int n, int k) {}", 'Launch("fw", ', "it launches fw(distance, n, k) for each k"),
        ("template <class T>\n__global__ void __launch_bounds__(256) fw(T *d", 'Launch(f"fw<{number(', "it launches fw(distance"),
        ("// mine", 'Launch(f"relax<', "write the launches of its __global__ functions into build, in place of relax"),
        ("__global__ void a(int *d) {}\n__global__ void b()", 'Launch(f"relax<', "write the launches of a, b into build"),
    ],
)
def test_only_the_plan_is_written_for_cuda_cpp_of_the_user(
    source: str, launch: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cu = tmp_path / "mine.cu"
    cu.write_text(source)
    mine = copied(cu)
    assert cu.read_text() == source and launch in (tmp_path / "mine.cu.py").read_text()
    assert f"mine.cu.py written for your mine.cu; {sentence}" in capsys.readouterr().out
    assert (mine.dtypes == ("int32",)) == ("fw(int" in source)


def test_a_full_disk_leaves_no_file_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"ulimit -f 0; exec '{sys.executable}' -B -P -m fwtui new mine.cu"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "cannot be written: file too large; choose another place" in done.stderr
    assert [*tmp_path.glob("*mine*")] == []
    (tmp_path / "mine.cu.py").write_text("mine")
    assert main(["new", str(tmp_path / "mine.cu")]) == 2
    assert "mine.cu.py exists already and is not overwritten; choose another name" in capsys.readouterr().err
    assert [file.name for file in tmp_path.glob("*mine*")] == ["mine.cu.py"] and (tmp_path / "mine.cu.py").read_text() == "mine"
