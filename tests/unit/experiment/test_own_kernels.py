"""User kernels in a process that does not load them: names, and requests to another process."""

import os
import sys
from pathlib import Path

import pytest
from own_files import TELLS, written

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, changed, kernel_named, settle
from fwtui.experiment.user_kernel_registry import find_kernel_file, name_for, register_kernel
from fwtui.learn.kernel_source import SourcePart, source
from fwtui.learn.stepping import Stepping, stepping
from fwtui_kernels.plan import Cost, Shape


def test_an_admitted_file_is_a_kernel_whose_experiment_has_its_fingerprint_and_no_path(tmp_path: Path) -> None:
    path = written(tmp_path, "only_here.py", more=TELLS)
    assert register_kernel(path) == "only-here" and path.with_suffix(".ran").exists()
    kernel = kernel_named("only-here")
    assert kernel is kernel_named(str(path)) and (kernel.backend, kernel.dtypes) == ("cpu", ("float32",))
    assert [(step.args, step.cost) for step in kernel.plan(Shape(2), True)] == [((0,), Cost(4, 0)), ((1,), Cost(4, 0))]
    assert not any("only_here" in name for name in sys.modules), "this process ran it"
    path = written(tmp_path)
    settled = settle(Experiment(kernel=register_kernel(path), n=5))
    assert settled.kernel == "mine" and len(settled.code) == 16 and str(tmp_path) not in str(settled)
    assert settle(changed(settled, kernel="serial")).code == ""
    before = path.stat()
    path.write_text(path.read_text()[:-1] + " ")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert settle(changed(settled, code="")).code != settled.code == settle(settled).code
    at: Stepping = stepping(Experiment(kernel=register_kernel(written(tmp_path)), n=5))
    assert len(at.trace.moments) == 5


def test_its_source_is_shown_as_it_is_now_with_the_relaxations_of_compiled_code(tmp_path: Path) -> None:
    name = register_kernel(path := written(tmp_path))
    assert shown(name).lines[0] == '"""Row by row, in NumPy."""' and not shown(name).relaxing
    path.write_text("@jit\ndef relax(d, k):\n\td[0, 0] = min(d[0, 0], d[0, k])\n")
    assert shown(name).relaxing == {3} and shown(name).lines[2].startswith("    d[0, 0]")
    path.write_text("def relax(:\n")
    assert shown(name).lines[0] == "def relax(:"
    name = register_kernel(path := written(tmp_path, "cuda.cu.py"))
    (tmp_path / "cuda.cu").write_text("// in C++\n")
    assert (shown(name).file, shown(name).lines[0]) == ("cuda.cu", "// in C++")
    for file in (path, tmp_path / "cuda.cu"):
        file.unlink()
    os.mkfifo(path)
    assert shown(name).lines == ("",)


def shown(name: str) -> SourcePart:
    (part,) = source(name)
    return part


def test_names_are_those_of_the_files_and_never_of_another_kernel(tmp_path: Path) -> None:
    names = [name_for(tmp_path / "hw" / file) for file in ("mine.py", "My_Kernel 2.py", "naive.py", "auto.py")]
    assert names == ["mine", "my-kernel-2", "hw-naive", "hw-auto"]
    first, second = (register_kernel(written(tmp_path / folder)) for folder in ("a", "b"))
    assert (first, second, register_kernel(tmp_path / "a" / "mine.py")) == ("mine", "b-mine", "mine")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.py", "the kernel 'gone.py' cannot be read: there is no such file; `fwtui new gone.py` writes one"),
        ("notes.txt", "'notes.txt' is not a kernel file, which ends in .py or .cu; name a Python file"),
        ("gone.cu", "the CUDA C++ of 'gone.cu' needs a plan of its launches in gone.cu.py; `fwtui new gone.cu` writes it"),
        ("missing.cu", "the kernel 'missing.cu' cannot be read: there is no such file; `fwtui new missing.cu` writes one"),
        ("folder.py", "the kernel 'folder.py' is not a file"),
        ("~nobody/" + "x" * 300 + ".cu", "the kernel '~nobody/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' cannot be read: "),
        ("folder.py/mine.py", "the kernel 'folder.py/mine.py' cannot be read: there is no such file"),
    ],
)
def test_other_files_are_not_kernel_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "missing.cu.py").write_text("# a plan, which must not replace the file that was named\n")
    with pytest.raises(Refused) as refusal:
        find_kernel_file(name)
    assert str(refusal.value).startswith(sentence)


def test_an_unregistered_file_is_not_a_kernel(tmp_path: Path) -> None:
    path = written(tmp_path, more=TELLS)
    with pytest.raises(Refused, match="there is no kernel"):
        kernel_named(str(path))
    assert not path.with_suffix(".ran").exists()


def test_a_file_that_hangs_or_ends_its_process_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"hangs.py takes more than 1 s to load; look for a loop that does not end"):
        # this file alone: the others may take longer on a busy machine
        register_kernel(written(tmp_path, "hangs.py", more="while True: pass\n"), seconds=1.0)
    with pytest.raises(Refused, match=r"ends.py ended the process that loaded it \(exit code 3\)"):
        register_kernel(written(tmp_path, "ends.py", more="import os; os._exit(3)\n"))
    with pytest.raises(Refused, match=r"wrong.py:\d+: NameError: name 'nothing' is not defined"):
        register_kernel(written(tmp_path, "wrong.py", more="nothing\n"))
