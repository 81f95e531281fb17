"""What each module brings with it, seen in clean processes; and what no file of the project may contain."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fwtui
import fwtui_kernels
from fwtui.tui.frame.places import PLACES

ROOT = Path(__file__).resolve().parents[2]
# what takes a quarter of a second or more, and starts no thread
ONCE = {
    "textual": "fwtui.tui.frame.frame",
    "numba": "numba",
    "cuda": "numba.cuda",
    "scipy": "scipy.sparse.csgraph",
    "networkx": "networkx",
}
HEAVY = ("numba", "llvmlite", "cuda", "textual", "plotext", "scipy", "networkx", "pynvml")
# what each package may bring along; whatever is not named may bring nothing of HEAVY
MAY: dict[str, tuple[str, ...]] = {
    "fwtui.tui": ("textual", "plotext"),
    "fwtui.machine.telemetry.nvml": ("pynvml",),
    "fwtui.machine.telemetry.sampler": ("pynvml",),
    "fwtui.engine": ("numba", "llvmlite", "cuda", "scipy"),
    "fwtui.measure": ("numba", "llvmlite", "cuda", "scipy"),
    "fwtui.solver.cpu_predecessors": ("numba", "llvmlite", "scipy"),
    "fwtui.solver.like_scipy": ("scipy",),
    "fwtui.solver.networkx_backend": ("networkx",),
    "fwtui_kernels.programs.cuda_source": ("cuda",),
    "fwtui_kernels.programs.cpu_stack": ("numba", "llvmlite", "scipy"),
    "fwtui.solver.cpu_stacks": ("numba", "llvmlite", "scipy"),
    **dict.fromkeys(
        (f"fwtui_kernels.compiled.{name}" for name in ("simulator", "device", "cubin_cache", "array_abi", "ptxas")), ()
    ),
    **dict.fromkeys((f"fwtui_kernels.compiled.{name}" for name in ("cuda_driver", "cuda_memory", "gpu")), ("cuda",)),
    "fwtui_kernels.compiled": ("numba", "llvmlite", "cuda", "scipy"),
}

# the file of a rung with functions for the CPU, which is run without all this to be listed; kernels for a GPU bring nothing
ON_CPU = ("k10_serial", "k15_scipy", "k20_tiled_cpu", "k24_stacked_cpu", "k86_stacked")
MAY |= {f"fwtui_kernels.{name}": ("numba", "llvmlite", "scipy") for name in ON_CPU}

# one process; each import in a fork of it, so that the next one is as clean
EACH_MODULE = """
import json, os, sys
import argparse, asyncio, ctypes, importlib.metadata, msgspec, numpy, psutil, subprocess  # what is light, once
import fwtui.analysis.columns, fwtui.machine.settings, fwtui.stream.model
heavy = sys.argv[1].split(",")
for name in filter(None, sys.argv[2].split(",")):  # what these modules may bring, once
    __import__(name)
for name in sys.argv[3:]:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            __import__(name)
            answer = sorted({m.partition(".")[0] for m in sys.modules} & set(heavy))
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(tell, json.dumps(answer).encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    print(json.dumps([name, json.loads(os.read(told, 65536))]), flush=True)
    os.close(told)
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
    return {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "COVERAGE", "PYTEST"))} | {"PYTHONPATH": str(ROOT)}


def roots() -> list[str]:
    """Modules that no other one imports: what they bring is what all others bring, which the contracts free of circles."""
    sources = [path.read_text() for folder in ("fwtui", "kernels") for path in (ROOT / folder).rglob("*.py")]
    lines = [
        line for source in sources for line in re.findall(r"^from (fwtui(?:_kernels)?[\w.]*) import (.*)$", source, re.MULTILINE)
    ]
    imported = {f"{module}.{name}" for module, names in lines for name in re.findall(r"\w+", names)} | {m for m, _ in lines}
    return [name for name in modules() if name not in imported]


@pytest.mark.parametrize("which", [roots, pytest.param(modules, marks=pytest.mark.slow)])
def test_every_module_imports_alone_and_brings_only_what_it_may(which: Callable[[], list[str]]) -> None:
    names = which()
    assert len(names) > 50
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(tuple(sorted(ONCE[heavy] for heavy in allowed(name) & ONCE.keys())), []).append(name)
    told: dict[str, list[str] | str] = {}
    for once, together in groups.items():
        done = subprocess.run(
            [sys.executable, "-P", "-c", EACH_MODULE, ",".join(HEAVY), ",".join(once), *together],
            capture_output=True,
            text=True,
            timeout=120,
            env=clean_environment(),
        )
        assert done.returncode == 0, done.stderr
        told |= dict(json.loads(line) for line in done.stdout.splitlines())
    assert sorted(told) == sorted(names)
    broken = {name: brought for name, brought in told.items() if isinstance(brought, str)}
    assert not broken
    too_much = {name: extra for name, brought in told.items() if (extra := set(brought) - allowed(name))}
    assert not too_much
    assert "textual" in told["fwtui.tui.export.capture"], "the check sees what is imported"


# what the first frame of the dashboard does not show, and so does not wait for: each is imported where it is first used
LATE = (
    *(
        "fwtui.campaigns.reproduce",
        "fwtui.campaigns.sweep",
        "fwtui.learn.course",
        "fwtui.analysis.report",
        "fwtui.commands.doctor",
        "fwtui.live.counters",
        "fwtui.commands.run",
    ),
    *("fwtui.sessions.reader", "fwtui.sessions.player", "fwtui.sessions.library", "fwtui.analysis.export"),
    *(
        "fwtui.tui.app.claims",
        "fwtui.tui.frame.cue_card",
        "fwtui.tui.frame.playback",
        "fwtui.tui.app.session_opener",
        "fwtui.tui.frame.transport",
    ),
    *("fwtui.tui.run.dialogs", "fwtui.tui.frame.saving", "fwtui.tui.charts.chart", "plotext", "numpy"),
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
        while not loaded or not (footer := sum(len(line.subject) for line in app.screen.query("KeyLine"))):
            await pilot.pause(0.02)
    live.close()
    print(json.dumps([footer, sorted(loaded)]))
asyncio.run(main())
"""


def test_the_first_frame_of_the_dashboard_brings_nothing_that_it_does_not_show() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST_FRAME], capture_output=True, text=True, timeout=60, env=clean_environment()
    )
    assert done.returncode == 0, done.stderr
    footer, loaded = json.loads(done.stdout)
    assert footer > 3 and "fwtui.tui.run.live_screen" in loaded
    others = {f"fwtui.tui.{where.partition(':')[0]}" for place in PLACES[1:] for where in (place.live, place.recorded) if where}
    assert len(others) > 5 and {*others, *LATE} <= set(modules()) | {"plotext", "numpy"}, "each is there to be imported"
    assert not {*others, *LATE} & set(loaded)


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


def test_listing_every_kernel_and_its_plan_brings_no_package() -> None:
    command = [sys.executable, "-P", "-c", EVERY_PLAN]
    kernels, least, loaded = json.loads(subprocess.check_output(command, text=True, timeout=60, env=clean_environment()))
    assert kernels == len(fwtui_kernels.registry()) and least > 0
    assert not set(loaded) & {*HEAVY, "numpy"}


RUN_MAIN = """
import json, sys
try:
    from fwtui.__main__ import main
    code = main(sys.argv[1:])
except SystemExit as stopped:
    code = stopped.code
print(json.dumps([code, sorted({m.partition(".")[0] for m in sys.modules})]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["run", "--help"], 0),
        (["replay", "--help"], 0),
        (["list"], 0),
        (["kernels"], 0),
        (["kernels", "--json"], 0),
        (["doctor"], 0),
        (["doctor", "--extra"], 0),
        (["check", "golden"], 0),
        (["replay", "--json", "golden"], 0),
        (["replay", "--table", "golden"], 0),
        (["run", "-n", "0"], 2),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else None,
)
def test_light_commands_stay_light(words: list[str], code: int, tmp_path: Path) -> None:
    golden = str(ROOT / "tests" / "data" / "golden-v1.fwt.jsonl")
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN_MAIN, *[golden if w == "golden" else w for w in words]],
        capture_output=True,
        text=True,
        timeout=60,
        env={**clean_environment(), "XDG_DATA_HOME": str(tmp_path)},
    )
    got, loaded = json.loads(done.stderr.splitlines()[-1])
    assert got == code, done.stderr
    assert "Traceback" not in done.stderr
    assert not set(loaded) & {"numba", "llvmlite", "cuda", "textual", "plotext", "scipy"}
    assert done.stdout or words[0] == "run" or words == ["doctor", "--extra"]


def tracked() -> Iterator[tuple[str, str]]:
    """Name and text of every text file that git knows or would take."""
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
