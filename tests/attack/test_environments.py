"""Environments with odd variables, low limits and damaged caches: every command ends with its exit code and no traceback."""

import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from attacking import RARE, SEED, attack, sized
from hypothesis import strategies as st
from processes import ROOT
from test_damaged_caches import DAMAGES  # pyright: ignore[reportMissingImports]

FOLDERS = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NUMBA_CACHE_DIR")
NAMES = (
    *("TERM", "COLUMNS", "LINES", "LANG", "LC_ALL", "TZ", "NO_COLOR", "PATH", "CUDA_VISIBLE_DEVICES", "TEXTUAL_DRIVER"),
    *("NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT", "NUMBA_THREADING_LAYER", "OMP_NUM_THREADS", "MPI4PY_RC_THREADS"),
    *("FWTUI_THEME", "FWTUI_SAMPLES", "FWTUI_RANK_TIMEOUT", "FWTUI_NONSENSE"),
)
VALUES = (
    *("", "0", "-1", "1", "4096", "no", "é", "9" * 400, "\x1b[2J", "a b", "1e999", "/dev/null", "C", "xterm", "UTC+26"),
    os.fsdecode(b"\xff"),
)
PLACES = ("", "/dev/null", "/proc", "/proc/nowhere/at/all", "relative", os.fsdecode(b"/tmp/\xff"), "/" + "x" * 300)
COMMANDS = (
    *(("list",), ("kernels",), ("--help",), ("--version",), ("config",), ("check", "lecture-tiles"), ("solve", "g.csv")),
    *(("replay", "lecture-tiles", "--json"), ("render", "lecture-tiles", "-o", "out.txt"), ("new", "mine.py")),
    ("run", "-k", "tiled-cpu", "-n", "8", "--repeats", "1", "--telemetry-hz", "0"),
    ("run", "-k", "serial", "-n", "8", "--repeats", "1", "--telemetry-hz", "0"),
)
LIMITS = {
    resource.RLIMIT_NOFILE: (20, 32, 64),
    resource.RLIMIT_FSIZE: (0, 1, 4096),  # bytes of a file: with 0 also no temporary folder can be used
    resource.RLIMIT_AS: (200_000 << 10, 720_000 << 10),
    resource.RLIMIT_NPROC: (1, 3, 8),  # root has none
}
CASES = {
    "changes": st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=3),
    "folders": st.dictionaries(st.sampled_from(FOLDERS), st.sampled_from(PLACES), max_size=2),
    "command": st.sampled_from(COMMANDS),
    "limit": st.sampled_from([*LIMITS]).flatmap(lambda kind: st.tuples(st.just(kind), st.sampled_from(LIMITS[kind]))) | st.none(),
}


def in_an_environment(
    tmp_path: Path, changes: dict[str, str], folders: dict[str, str], command: tuple[str, ...], limit: tuple[int, int] | None
) -> None:
    for old in tmp_path.glob("[!x]*.*"):
        old.unlink()
    (tmp_path / "g.csv").write_text("a,b,1\nb,c,2\n")
    own = {name: str(tmp_path / "x") for name in FOLDERS if name.startswith("XDG")}
    environment = {**os.environ, **own, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)), **changes, **folders}
    run(tmp_path, environment, command, limit)


def run(folder: Path, environment: dict[str, str], command: tuple[str, ...], limit: tuple[int, int] | None = None) -> int:
    """Run a command under the limit, assert that it ends without a traceback, and return its exit code."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fwtui", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit else None,
    )
    assert done.returncode in range(6), done
    assert b"Traceback" not in done.stderr and b"\x1b[2J" not in done.stdout + done.stderr, done
    assert done.returncode == 0 or done.stderr, done
    return done.returncode


test_odd_variables = attack(3, **CASES)(in_an_environment)
test_odd_variables_in_many_cases = pytest.mark.slow(attack(1000, **CASES)(in_an_environment))


@pytest.mark.attack
@RARE
def test_damaged_caches(tmp_path: Path) -> None:
    """Some cache files of a run become something else; the next run compiles again."""
    chance = random.Random(SEED)
    folders = dict.fromkeys((name for name in FOLDERS if name.startswith("XDG")), str(tmp_path / "x"))
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT)}
    assert run(tmp_path, environment, COMMANDS[-1]) == 0
    for _ in range(sized(1)):
        left = [path for path in (tmp_path / "x").rglob("*") if path.is_file()]
        for path in chance.sample(left, chance.randrange(1, len(left) + 1)):
            DAMAGES[chance.choice([*DAMAGES])](path)
        assert run(tmp_path, environment, COMMANDS[-1]) == 0
