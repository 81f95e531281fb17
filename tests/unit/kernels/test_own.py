"""User kernel files: their contents, and one sentence about each mistake."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from own_files import WHOLE, written

from fwtui.commands.new import python
from fwtui_kernels.own import UserKernelError, check, describe_error, fingerprint, load
from fwtui_kernels.plan import Shape


def test_a_file_with_plan_and_build_is_a_kernel_but_for_name_and_preference(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.py", (WHOLE[WHOLE.index("KERNEL") :], ""))
    kernel = load(path, "mine")
    check(kernel, path)
    assert (kernel.id, kernel.title, kernel.summary) == ("mine", "mine", "Row by row, in NumPy.")
    assert [step.args for step in kernel.plan(Shape(3), False)] == [(0,), (1,), (2,)]
    path = written(tmp_path, "mine.py", ('dtypes=("float32",)', 'dtypes=("float32",), id="naive", title="Mine", preference=99'))
    kernel = load(path, "mine")
    assert (kernel.id, kernel.title, kernel.backend, kernel.preference) == ("mine", "Mine", "cpu", 0)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("in range(n):", "in range(n)", "mine.py:14:22: SyntaxError: expected ':': for k in range(n)"),
        ("import numpy", "import no_such", "mine.py:5: ModuleNotFoundError: No module named 'no_such': import no_such as np"),
        ("import numpy as np", "from kernels_of_mine import np", "mine.py:5: ModuleNotFoundError: No module named 'kernels_of_"),
        ("KERNEL = own(plan, build, ", "KERNEL = 5  # (", "KERNEL in mine.py is of type int; set it to own(plan, build, ...)"),
        ("def plan(shape, stepwise)", "def plan(shape)", "mine.py:11: plan must take (shape, stepwise), but takes (shape): d"),
        ("own(plan, build,", "own(plan, 7,", "build in mine.py is not a function; it must take (shape, target)"),
        ("    n = shape.n\n", "    n = shape.m\n", "mine.py:12: AttributeError: 'Shape' object has no attribute 'm': n = sh"),
        ('yield Step("relax", ', 'yield ("relax", ', "plan in mine.py yields values of type tuple; it must yield a Step for e"),
        ("range(n):", "range(0):", "plan in mine.py has no steps for n = 3; it must yield a Step for each launch"),
        ('"relax", "all"', '"relax", "rest"', "a step in mine.py has the phase 'rest'; the phases of KERNEL are: all"),
        ('backend="cpu"', 'backend="gpu"', "backend of KERNEL in mine.py is gpu; choose among cpu, cuda"),
        ('("float32",)', '("int64",)', "dtypes of KERNEL in mine.py is int64; choose among float32, int32, int16, float64"),
        ("KERNEL = own", "import sys; sys.exit(3)\nKERNEL = own", "mine.py:28: SystemExit: 3: import sys; sys.exit(3)"),
    ],
)
def test_a_mistake_in_a_kernel_file_is_reported_with_its_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = written(tmp_path, "mine.py", (old, new))
    with pytest.raises(UserKernelError) as wrong:
        check(load(path, "mine"), path)
    assert str(wrong.value).startswith(sentence) and str(tmp_path) not in str(wrong.value)


PLANS = """
import sys
from pathlib import Path
from fwtui_kernels.own import check, load
for path in map(Path, sys.argv[1:]):
    check(load(path, "mine", for_plan=True), path)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"numba", "cuda", "llvmlite"}))
"""


def test_a_plan_needs_no_numba(tmp_path: Path) -> None:
    paths = []
    for rung in (None, "katz-kider", "staged-load", "kleene-base", "look-ahead", "serial"):
        paths.append(tmp_path / f"{rung}.py")
        paths[-1].write_text(python(rung, "mine"))
    assert subprocess.check_output([sys.executable, "-P", "-c", PLANS, *paths], text=True) == "[]\n"


def test_a_kernel_file_without_build_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.py", (WHOLE[WHOLE.index("KERNEL") :], ""), ("def build", "def make"))
    with pytest.raises(UserKernelError, match=r"mine.py has no build\(shape, target\); `fwtui new` writes a working file"):
        load(path, "mine")


def test_numbas_errors_are_reported_with_their_line(tmp_path: Path) -> None:
    from numba import njit

    path = written(tmp_path, "mine.py", more="\n\ndef wrong(n):\n    return n.nothing + 1\n")
    kernel = load(path, "mine")
    with pytest.raises(Exception, match="nothing") as error:
        compiled: Any = njit(kernel.build.__globals__["wrong"])  # type: ignore[attr-defined]
        compiled(3)
    assert describe_error(error.value, path).startswith("mine.py:32: TypingError: Unknown attribute 'nothing' of type int64")
    assert describe_error(error.value, path).endswith(": return n.nothing + 1")


def test_files_of_the_same_folder_are_reloaded_and_may_be_called_kernels(tmp_path: Path) -> None:
    (tmp_path / "beside_own.py").write_text("WORDS = 'first'\n")
    path = written(
        tmp_path, "mine.py", ("dtypes=", "title=beside_own.WORDS, dtypes="), ("import numpy", "import beside_own\nimport numpy")
    )
    assert load(path, "mine").title == "first"
    (tmp_path / "beside_own.py").write_text("WORDS = 'other'\n")
    assert load(path, "mine").title == "other"
    path.write_text(path.read_text().replace("beside_own.WORDS", "'third'.title()"))
    assert load(path, "mine").title == "Third"
    (tmp_path / "kernels.py").write_text("TITLE = 'His'\n")
    path = written(
        tmp_path, "mine.py", ("dtypes=", "title=kernels.TITLE, dtypes="), ("import numpy", "import kernels\nimport numpy")
    )
    assert load(path, "mine").title == "His"


def test_the_fingerprint_is_of_every_file_of_the_kernel(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.cu.py")
    found = [fingerprint(path)]
    (tmp_path / "mine.cu").write_text("a")
    found.append(fingerprint(path))
    (tmp_path / "mine.cu").write_text("b")
    found.append(fingerprint(path))
    (tmp_path / "other.cu").write_text("c")
    assert len(set(found)) == 3 and fingerprint(path) == found[-1]
