"""Imports of each module in clean processes, and rules for all files of the project."""

import ast
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import ROOT
from recorded_sessions import GOLDEN

import fwtui
import fwtui_kernels
from fwtui.tui.frame.places import PLACES

HEAVY = ("numba", "llvmlite", "cuda", "textual", "plotext", "scipy", "networkx", "pynvml")
# what each package may bring along; whatever is not named may bring nothing of HEAVY
MAY: dict[str, tuple[str, ...]] = {
    "fwtui.tui": ("textual", "plotext"),
    "fwtui.machine.telemetry.nvml": ("pynvml",),
    "fwtui.machine.telemetry.sampler": ("pynvml",),
    "fwtui.engine": ("numba", "llvmlite", "cuda", "scipy"),
    "fwtui.measure": ("numba", "llvmlite", "cuda", "scipy"),
    "fwtui.solver.cpu_predecessors": ("numba", "llvmlite", "scipy"),
    "fwtui.solver.scipy_interface": ("scipy",),
    "fwtui.solver.networkx_backend": ("networkx",),
    "fwtui_kernels.programs.nvrtc": ("cuda",),
    **dict.fromkeys(
        (f"fwtui_kernels.{name}" for name in ("parts.cpu_sparse", "parts.dissection", "parts.row_factor", "probes.probe_cpu")),
        ("numba", "llvmlite", "scipy"),
    ),
    **dict.fromkeys(
        (f"fwtui_kernels.compiled.{name}" for name in ("simulator", "device", "cubin_cache", "array_abi", "ptxas")), ()
    ),
    **dict.fromkeys((f"fwtui_kernels.compiled.{name}" for name in ("driver_calls", "cuda_memory", "gpu")), ("cuda",)),
    "fwtui_kernels.compiled": ("numba", "llvmlite", "cuda", "scipy"),
}

# the file of a rung with functions for the CPU, which is run without all this to be listed; kernels for a GPU bring nothing
ON_CPU = ("k10_serial", "k15_scipy", "k20_tiled_cpu", "k26_sparse_cpu")
MAY |= {f"fwtui_kernels.{name}": ("numba", "llvmlite", "scipy") for name in ON_CPU}

# one process that imports what is light and the first list; each other list in a fork of it
EACH_LIST = """
import json, os, sys
import argparse, asyncio, ctypes, importlib.metadata, msgspec, numpy, psutil, subprocess
heavy, first, *others = map(json.loads, sys.argv[1:])
def brought(names):
    try:
        for name in names:
            __import__(name)
        return sorted({m.partition(".")[0] for m in sys.modules} & set(heavy))
    except BaseException as error:
        return f"{names}: {type(error).__name__}: {error}"
print(json.dumps(brought(first)), flush=True)
for names in others:
    child = os.fork()
    if child == 0:
        print(json.dumps(brought(names)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def modules() -> list[str]:
    found = ["fwtui", "fwtui_kernels"]
    for package in (fwtui, fwtui_kernels):
        found += [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None)]
    return [name for name in found if not name.endswith("__main__")]


def allowed(name: str) -> set[str]:
    for prefix, heavy in MAY.items():
        if name == prefix or name.startswith(f"{prefix}."):
            return set(heavy)
    return set()


def clean_environment() -> dict[str, str]:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "kernels")))
    return {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "COVERAGE", "PYTEST"))} | {"PYTHONPATH": paths}


def imported(*lists: list[str]) -> list[list[str] | str]:
    """Return the modules of HEAVY that each list brings beyond the first one, or its import error."""
    words = map(json.dumps, (HEAVY, *lists))
    command = [sys.executable, "-P", "-c", EACH_LIST, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean_environment())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_modules_import_only_permitted_packages() -> None:
    """Modules with the same rights share a process; a wrong import of one is still found."""
    groups: dict[tuple[str, ...], list[str]] = {(): []}
    for name in modules():
        groups.setdefault(tuple(sorted(allowed(name))), []).append(name)
    assert sum(map(len, groups.values())) > 400
    brought = imported(*groups.values())
    broken = [why for why in brought if isinstance(why, str)]
    assert not broken
    too_much = {heavy: set(found) - set(heavy) for heavy, found in zip(groups, brought, strict=True)}
    assert not any(too_much.values())
    assert "textual" in brought[list(groups).index(("plotext", "textual"))], "the check sees what is imported"


# what needs the packages of the extras cu12 and cu13; a machine without a GPU has none of them
FOR_A_GPU = {
    *(
        "fwtui.engine.cuda_engine",
        "fwtui.measure.pc_sampling",
        "fwtui.measure.profile_process",
        "fwtui.measure.warp_sampling_process",
    ),
    *(f"fwtui_kernels.compiled.{name}" for name in ("compiler", "cuda_intrinsics", "driver_calls", "cuda_memory", "gpu")),
    "fwtui_kernels.programs.nvrtc",
}


def test_only_the_adapter_calls_the_driver() -> None:
    sources = (file for folder in ("fwtui", "kernels") for file in (ROOT / folder).rglob("*.py"))
    assert [file.name for file in sources if "cuda.bindings" in file.read_text("utf-8")] == ["driver_calls.py"]


WITHOUT_CUDA = """
import json, sys
sys.meta_path[:] = [one for one in sys.meta_path if "numba_cuda" not in type(one).__module__]  # it has numba.cuda replaced
sys.modules["cuda"] = sys.modules["numba_cuda"] = None
failed = []
for name in json.loads(sys.argv[1]):
    try:
        __import__(name)
    except ImportError:
        failed.append(name)
print(json.dumps(failed))
"""


def test_everything_without_a_gpu_works_without_the_cuda_packages() -> None:
    command = [sys.executable, "-P", "-c", WITHOUT_CUDA, json.dumps([name for name in modules() if "cuda" in allowed(name)])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == FOR_A_GPU


# what the first frame of the dashboard does not show, and so does not wait for: each is imported where it is first used
LATE = (
    *("fwtui.campaigns.reproduction", "fwtui.campaigns.sweep", "fwtui.learn.course", "fwtui.analysis.report"),
    *("fwtui.commands.doctor", "fwtui.live.counters", "fwtui.commands.run", "fwtui.sessions.reader"),
    *("fwtui.sessions.player", "fwtui.sessions.library", "fwtui.analysis.export"),
    *("fwtui.tui.frame.cue_card", "fwtui.tui.frame.playback", "fwtui.tui.app.session_opener"),
    *("fwtui.tui.frame.playback", "fwtui.tui.compare.ladder_screen", "fwtui.tui.frame.saving", "fwtui.tui.charts.chart"),
    *("plotext", "numpy"),
)

FIRST_FRAME = """
import asyncio, json, sys
import fwtui.commands.dashboard
from fwtui.experiment.experiment import defaults
from fwtui.live.session import Live
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.frame import Frame
loaded, begun = [], Frame.begun
def painted(self):
    loaded.extend(sys.modules)
    begun(self)
Frame.begun = painted
async def main():
    live = Live(telemetry_hz=0)
    app = FwtuiApp(live, defaults(False), still=True)
    async with app.run_test(size=(120, 40)) as pilot:
        while not loaded or not (footer := len(app.screen.query("KeyName"))):
            await pilot.pause(0.02)
    live.close()
    print(json.dumps([footer, sorted(loaded)]))
asyncio.run(main())
"""


def test_the_first_frame_imports_only_modules_that_it_shows() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST_FRAME], capture_output=True, text=True, timeout=60, env=clean_environment()
    )
    assert done.returncode == 0, done.stderr
    footer, loaded = json.loads(done.stdout)
    assert footer > 3 and "fwtui.tui.run.live_screen" in loaded
    others = {f"fwtui.tui.{where.partition(':')[0]}" for place in PLACES[1:] for where in (place.live, place.recorded) if where}
    assert len(others) > 5 and {*others, *LATE} <= set(modules()) | {"plotext", "numpy"}, "each is there to be imported"
    assert not ({*others, *LATE} & set(loaded)), sorted({*others, *LATE} & set(loaded))


EVERY_PLAN = """
import json, sys
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape
steps = {}
for kernel in registry().values():
    shape = Shape(3 * kernel.default_tile, kernel.default_tile, kernel.dtypes[-1], options=kernel.defaults)
    steps[kernel.id] = len(list(kernel.plan(shape, True)))
print(json.dumps([len(steps), min(steps.values()), sorted({m.partition(".")[0] for m in sys.modules})]))
"""


def test_listing_all_kernels_and_plans_imports_no_package() -> None:
    command = [sys.executable, "-P", "-c", EVERY_PLAN]
    kernels, least, loaded = json.loads(subprocess.check_output(command, text=True, timeout=60, env=clean_environment()))
    assert kernels == len(fwtui_kernels.registry()) and least > 0
    assert not set(loaded) & {*HEAVY, "numpy"}


# each command in a fork of one process, with files for what it prints
EACH_COMMAND = """
import json, os, sys
import argparse, importlib.metadata, msgspec, psutil, signal, subprocess
for number, words in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if child == 0:
        for to, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT), to)
        try:
            from fwtui.__main__ import main
            code = main(words)
        except SystemExit as stopped:
            code = stopped.code
        sys.stdout.flush()
        print(json.dumps([code, sorted({m.partition(".")[0] for m in sys.modules})]), file=sys.stderr, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_light_commands_import_no_heavy_package(tmp_path: Path) -> None:
    golden = str(GOLDEN)
    commands = [
        *(["--help"], ["--version"], ["run", "--help"], ["list"], ["kernels"], ["kernels", "--json"]),
        *(["doctor"], ["check", golden], ["replay", "--json", golden], ["replay", "--table", golden]),
        ["run", "-n", "0"],
    ]
    environment = {**clean_environment(), "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, "-P", "-c", EACH_COMMAND, json.dumps(commands)]
    subprocess.run(command, check=True, timeout=60, env=environment, cwd=tmp_path)
    for number, words in enumerate(commands):
        printed, said = ((tmp_path / f"{number}.{name}").read_text() for name in ("out", "err"))
        code, loaded = json.loads(said.splitlines()[-1])
        assert code == (2 if words[0] == "run" and words[-1] != "--help" else 0), (words, said)
        assert "Traceback" not in said
        assert not set(loaded) & {"numba", "llvmlite", "cuda", "textual", "plotext", "scipy"}, words
        assert printed or words == ["run", "-n", "0"], words


def tracked() -> Iterator[tuple[str, str]]:
    """Yield the name and text of every text file that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, listed)):
        path = ROOT / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data[:4096]:
            yield name, data.decode("utf-8", "replace")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_file_names_a_package_index_or_somebodys_home() -> None:
    # put together here, so that this file does not name them
    index = re.compile("|".join(["--(extra-)?index" + "-url", "index" + "_url", "find" + "-links", "/sim" + "ple/?[\"'\\s]"]))
    home = re.compile("(?<![\\w.$}{])/(" + "|".join(["ho" + "me", "Us" + "ers", "ro" + "ot"]) + ")/\\w")
    # a name that a test makes up is nobody's home
    made_up = re.compile("/(ho" + "me|Us" + "ers)/(user|me|you|somebody|someone|alice|bob|name|x)\\b")
    found = []
    count = 0
    for name, text in tracked():
        count += 1
        for number, line in enumerate(text.splitlines(), 1):
            if index.search(line) or home.search(made_up.sub("", line)):
                found.append(f"{name}:{number}: {line.strip()[:120]}")
    assert count > 50
    assert not found


# what Python documents though it begins with an underscore
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_exit", "_getframe", "_fields_"}
PRIVATE = {
    ("fwtui/tui/textual_internals.py", "_compositor"),
    ("fwtui/tui/textual_internals.py", "_dirty_regions"),
    ("fwtui/tui/textual_internals.py", "_handle_exception"),
    ("fwtui/tui/textual_internals.py", "_xterm_parser"),
}


def private_to_libraries(tree: ast.Module) -> Iterator[str]:
    """Return private names of libraries that a file imports, reads or passes."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = ast.unparse(node.value)
            if owner == "super()" or (node.attr not in own and owner not in {"self", "cls"}):
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("__future__", "fwtui")):
            yield from (node.module or "").split(".")
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Dict):
            yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant) and str(key.value).isidentifier())


def test_private_members_of_libraries_are_only_in_adapters() -> None:
    """Each adapter has a guard whose sentence names a missing member."""
    found = set()
    for folder in (Path(*fwtui.__path__), Path(*fwtui_kernels.__path__)):
        for path in folder.rglob("*.py"):
            names = private_to_libraries(ast.parse(path.read_text()))
            private = (name for name in names if re.match(r"_[a-z]", name) and name not in DOCUMENTED)
            found |= {(str(path.relative_to(ROOT)), name) for name in private}
    assert found == PRIVATE, found ^ PRIVATE
    assert len(PRIVATE) <= 10
