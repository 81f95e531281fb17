"""`python tests/mutants.py [FILE ...]`: the share of mutmut's faults in the code that the tests catch.

Without files: those that read others' data. The exit code is 1 if a file has less than SHARE of its faults caught. Each survivor
is named.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARE = 0.9
# what must hold, and the tests that have to notice; those of other files are in the folder of tests of their package
CHECKED = {
    "fwtui/stream/codec.py": ("tests/unit/stream/test_codec.py", "tests/bad_files/test_damaged_files.py"),
    "fwtui/sessions/reader.py": ("tests/unit/sessions", "tests/bad_files/test_damaged_files.py"),
    "fwtui/graphs/formats/*.py": ("tests/unit/graphs",),
    "fwtui/graphs/bounds.py": ("tests/unit/graphs/test_bounds.py",),
}
CAUGHT = ("killed", "timeout", "segfault")
SETTINGS = """[mutmut]
source_paths = fwtui
only_mutate = {file}
process_isolation = forkserver
also_copy =
  kernels
  sessions
  fwtui
  README.md
pytest_add_cli_args =
  -o
  addopts=-m "not gpu and not slow"
  -p
  no:cacheprovider
pytest_add_cli_args_test_selection =
  {tests}
"""


def output(*command: str, folder: Path = ROOT) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def results(file: str, tests: Sequence[str]) -> dict[str, str]:
    """Return the outcome of each fault in these files by its name."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in output("git", "ls-files").splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        (folder / "setup.cfg").write_text(SETTINGS.format(file=file, tests="\n  ".join(tests)))
        paths = [
            folder / "mutants",
            folder / "mutants" / "kernels",
        ]  # before the installed ones, also in programs that tests start
        paths[1].mkdir(parents=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, "-m", "mutmut"]
        done = subprocess.run([*command, "run"], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{file}: mutmut ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        listed = subprocess.run(
            [*command, "results", "--all", "true"], cwd=folder, env=environment, capture_output=True, text=True
        )
        return dict(re.findall(r"^\s+(\S+): (.+)$", listed.stdout, re.MULTILINE))


def summed(file: str, found: dict[str, str]) -> float:
    """Print every survivor and return the share of caught faults."""
    tried = {name: state for name, state in found.items() if state != "not checked"}
    caught = sum(state in CAUGHT for state in tried.values())
    share = caught / len(tried) if tried else 1.0
    print(f"{file:36} {caught:5} of {len(tried):5} caught {share:6.1%}", flush=True)
    for name in (name for name, state in tried.items() if state not in CAUGHT):
        print(f"  {name}: {tried[name]}", flush=True)
    return share


def tests_of(file: str) -> tuple[str, ...]:
    """Return the tests of that file, or those of its package."""
    folder = f"tests/unit/{file.split('/')[1]}"
    return CHECKED.get(file) or ((folder,) if (ROOT / folder).is_dir() else ("tests/unit/commands",))


def main() -> int:
    if sys.argv[1:]:
        return int(min(summed(file, results(file, tests_of(file))) for file in sys.argv[1:]) < SHARE)
    return int(bool([file for file, tests in CHECKED.items() if summed(file, results(file, tests)) < SHARE]))


if __name__ == "__main__":
    sys.exit(main())
