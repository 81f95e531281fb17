"""Contents of an installation: the packages with their types, and the sessions and texts that they read."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from processes import ROOT

SCRIPT = ROOT / "tests" / "data" / "users_script.py"
CODE = {".py", ".pyi", ".cu", ".css", ".html", ".js", ".toml", ".md"}
DATA = {".gz", ".ipynb", ".toml", ".md"}
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
# run with the Python of the environment, whose packages they look at
CHECKERS = {
    "pyright": ("--pythonpath", "{python}", str(SCRIPT)),
    "mypy": ("--strict", "--cache-dir", "{cache}", "--python-executable", "{python}", str(SCRIPT)),
}
# a machine without a GPU: what has numba.cuda replaced goes, too
NO_CUDA = """import sys
sys.meta_path[:] = [one for one in sys.meta_path if "numba_cuda" not in type(one).__module__]
sys.modules["cuda"] = sys.modules["numba_cuda"] = None
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and the installed packages, without those of CUDA."""
    folder = tmp_path_factory.mktemp("environment with a space")
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "others.pth").write_text("\n".join(dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib"))))
    (packages / "sitecustomize.py").write_text(NO_CUDA)
    return folder / "bin" / "python"


def test_the_wheel_holds_what_is_tracked_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {info.filename for info in archive.infolist()}
    listed = subprocess.run(["git", "ls-files", "fwtui", "kernels", "sessions"], cwd=ROOT, capture_output=True, text=True)
    if not listed.stdout:
        pytest.skip("this is no git checkout")
    tracked = {f"fwtui/_{name}" if name.startswith("sessions/") else name for name in listed.stdout.split()}
    tracked = {name.removeprefix("kernels/") for name in tracked - {"kernels/README.md"}}
    about = {name for name in held if ".dist-info/" in name}
    assert held - about == tracked
    assert {name.split(".dist-info/")[1] for name in about} == ABOUT
    for name in tracked - {"fwtui/py.typed"}:
        assert Path(name).suffix in (DATA if name.startswith("fwtui/_sessions/") else CODE), name


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_type_checker_knows_the_types_of_the_wheel(checker: str, python: Path, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    options = [word.format(python=python, cache=tmp_path) for word in CHECKERS[checker]]
    command = [sys.executable, "-m", checker, *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=_environment(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_works_from_any_folder_and_without_a_gpu(python: Path, tmp_path: Path) -> None:
    commands = ["replay lecture-tiles --json", "run --kernel naive --n 8 --json", "run --kernel serial --n 8 --json"]
    for words in ([str(SCRIPT)], *(["-m", "fwtui", *words.split()] for words in commands)):
        command = [str(python), "-P", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=_environment(tmp_path))
        assert done.returncode == 0 and done.stdout, done.stderr


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": str(home)}
