"""Broken kernels in the simulator: each is found and reported in one correct sentence."""

import re
from pathlib import Path
from threading import Event

import msgspec
import numpy as np
import pytest
from data.broken_kernels.edits import BY_VERTEX, EDITS, FOLDER
from data.broken_kernels.planted import PLANTED
from data.broken_kernels.planted import RIGHT as RIGHT_KERNELS
from in_simulator import answers

import fwtui_kernels
from fwtui.common.child_process import Supervised
from fwtui.experiment.device import DeviceId
from fwtui.live.kernel_test import KernelTestProcess, run_kernel_test
from fwtui.measure.kernel_test_cases import kernel_test_ladder
from fwtui.stream.kernel_tests import Finding, KernelTestRequest, repeated_text, verdict
from fwtui_kernels import registry
from fwtui_kernels.plan import Rect

SIMULATOR = DeviceId("simulator")
EXAMPLES = Path(fwtui_kernels.__file__).parent / "examples"
# all in one process, each only until something is found; a process for each takes ten times as long
HARNESS = """
import msgspec
from in_simulator import tell
from fwtui.measure.kernel_test_process import KernelTest
from fwtui.stream.kernel_tests import Finding, KernelTestRequest
from fwtui.experiment.device import DeviceId

class Found(BaseException):
    pass

def found(case):
    told = []
    def take(finding):
        if isinstance(finding, Finding):
            told.append(msgspec.to_builtins(finding))
            if not finding.fine:
                raise Found
    try:
        KernelTest(KernelTestRequest(kernel="mine", path=case["path"], device=DeviceId("simulator")), take).run()
    except Found:
        pass
    return told

tell(found)
"""


def findings(path: Path) -> list[Finding]:
    (told,) = answers(HARNESS, [{"path": str(path)}])
    return [msgspec.convert(finding, Finding) for finding in told]


@pytest.mark.parametrize("name", [name for name, edit in EDITS.items() if edit.outcome != "hung"])
def test_a_broken_kernel_is_reported_in_one_sentence(name: str, tmp_path: Path) -> None:
    edit = EDITS[name]
    found = findings(edit.write(tmp_path))
    assert re.fullmatch(edit.simulated, verdict(found)), verdict(found)
    assert found[-1].outcome == edit.outcome
    if edit.outcome in ("wrong", "racy"):  # the finding about the plan is no case
        more = [found[0], *[msgspec.structs.replace(found[-1], n=5)] * 3]
        assert re.match("3 of 3 cases (are wrong|race), also ", repeated_text(more))


def test_the_place_of_a_wrong_cell_is_data(tmp_path: Path) -> None:
    where = findings(EDITS["wrong transposition"].write(tmp_path))[-1].where
    assert where is not None and (where.step, where.round, where.phase, where.op) == (2, 1, "remainder", "rest")
    assert where.block == Rect(4, 4, 5, 5) and where.writes == (where.rect,) == (Rect(4, 4, 8, 8),)
    cells = where.cells()
    assert cells.shape == (5, 5) and np.count_nonzero(cells) == where.count
    assert tuple(np.argwhere(cells)[0]) == (where.row, where.column)


# two matrices in turn, copies of panels, halves, another order of cells, one launch for all rounds
SEVERAL_WAYS = ("two-matrices", "two-matrix-blocked", "look-ahead", "kleene", "staged-natural", "resident")
LOOKING = """
from dataclasses import replace
import numpy as np
from in_simulator import tell
from fwtui.engine.engine_for import engine_for
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import fill_numpy, generate
from fwtui.measure.first_difference import first_difference
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape

def longer(program):
    load = program.load
    program.load = lambda matrix, *more: load(np.where((matrix > 0) & (matrix < 1000), matrix + 1, matrix), *more)
    return program

def look(case):
    kernel = registry()[case["kernel"]]
    tile = case["tile"] or 1
    graph = generate(Experiment(n=2 * tile + 1, dtype="int32", connected=True), fill_numpy)
    shape = Shape(graph.n, tile, "int32", options=kernel.defaults)
    other = replace(kernel, build=lambda *given: longer(kernel.build(*given)))
    found = [first_difference(one, shape, graph, engine_for(DeviceId("simulator"))) for one in (kernel, other)]
    return [difference is None for difference in found]

tell(look)
"""


@pytest.mark.parametrize("name", SEVERAL_WAYS)
def test_a_right_kernel_never_differs_from_its_plan(name: str) -> None:
    tiles = registry()[name].tiles_for(True)
    assert answers(LOOKING, [{"kernel": name, "tile": tiles[0] if tiles else 0}]) == [[True, False]], "or a wrong one does not"


def test_the_ladder_has_sizes_around_a_tile_then_kinds_then_types() -> None:
    cases = [case.name for case in kernel_test_ladder(registry()["katz-kider"], 32, False, (512,))]
    assert cases[:5] == [
        "n = 1, one vertex",
        "n = 31, one less than a tile",
        "n = 32, one tile",
        "n = 33, one more than a tile",
        "n = 81, two tiles and a bit",
    ]
    kinds = ("unreachable pairs", "one cycle through all vertices", "negative weights", "a negative cycle")
    assert cases[5:9] == [f"n = 81, {kind}" for kind in kinds]
    types = [f"n = {n}, {dtype}" for dtype in ("int32", "int16", "float64") for n in ("33", "81, unreachable pairs")]
    assert cases[9:] == [*types, "n = 512"]
    (first, *_), last = (list(kernel_test_ladder(registry()["naive-vector"], 1, True, (8, 4096))) for _ in range(2))
    assert first.graph.dtype == "int16" and last[-1].name == "n = 8"
    assert not any("negative" in case.name for case in last)


ON_A_CPU = """
import numpy as np
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Kernel
from fwtui_kernels.programs.cpu_program import CpuProgram

def relax(d, k):
    np.minimum(d, d[:, k, None] + d[k] {more}, out=d)

KERNEL = Kernel(
    id="mine", title="Mine", backend="cpu", papers=(), summary="", lesson="", dtypes=("int32",),
    plan=lambda shape, stepwise: by_vertex.plan(shape.n, Cost(shape.n**2, 0)),
    build=lambda shape, target: CpuProgram(shape, {{"relax": relax}}),
)
"""


def test_a_cpu_kernel_is_tried_and_timed(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(ON_A_CPU.format(more=""))
    found = findings(path)
    assert verdict(found) == "right in all 9 cases, up to n = 81"
    assert all(finding.seconds for finding in found if finding.n)


def test_kernels_that_are_not_simulated_are_checked_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text((EXAMPLES / "tile_32.cu.py").read_text().replace("max_n=MAX_N", "max_n=MAX_N, simulates=False"))
    found = findings(path)
    assert [finding.case for finding in found] == ["plan", "all graphs"]
    assert verdict(found) == "all graphs: skipped: the simulator does not support this kernel; it needs a GPU"
    path.write_text((FOLDER / BY_VERTEX).read_text().replace("to_k =", "cuda.syncwarp()\n            to_k ="))
    assert {finding.outcome for finding in findings(path)[1:]} == {"left out"}
    assert "skipped: it takes a GPU: the simulator has no cuda.syncwarp" in findings(path)[-1].sentence


def test_results_that_change_between_repetitions_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(ON_A_CPU.format(more="+ np.random.default_rng().integers(0, 99)"))
    told = findings(path)[-1]
    assert told.outcome == "racy" and told.where is not None
    assert re.match(r"n = 31: ran 5 times, [2-5] different results: it races; wrong at row ", told.sentence)


def simulated(path: Path) -> KernelTestRequest:
    return KernelTestRequest(kernel="mine", path=str(path), device=SIMULATOR)


def test_a_trial_that_is_stopped_ends_without_a_finding(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    assert list(run_kernel_test(simulated(EDITS["infinite loop"].write(tmp_path)), stop=stop)) == []


def test_a_process_that_waited_serves_one_trial_and_ends_with_its_stdin() -> None:
    supervised = Supervised(lambda: KernelTestProcess(SIMULATOR))
    supervised.prepare()
    found = list(run_kernel_test(simulated(FOLDER / BY_VERTEX), start=supervised.take))
    assert verdict(found) == "right in all 11 cases, up to n = 11"
    supervised.prepare()
    waiting = supervised.take()
    assert waiting.finish(60).code == 0


CONFUSING = "for f in range(3, 9):\n    with contextlib.suppress(OSError):\n        os.write(f, b'x\\n')"


@pytest.mark.parametrize("barrier", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_kernel_that_hangs_is_ended_and_its_line_named(tmp_path: Path, barrier: bool) -> None:
    edit = EDITS["infinite loop"]
    path = edit.write(tmp_path)
    if barrier:  # where it often is between two threads
        path.write_text(path.read_text().replace("            distance[i, j] = min(", "            cuda.syncthreads()  # ("))
    told = list(run_kernel_test(simulated(path), seconds=0.7))
    assert re.fullmatch(edit.simulated, told[-1].sentence), told[-1].sentence
    assert [finding.outcome for finding in told] == ["right", "hung"]


@pytest.mark.parametrize(
    ("text", "outcome", "sentence"),
    [
        ("print('hello')\nos.kill(os.getpid(), 11)", "died", "the process that ran it died (signal 11, segmentation fault)"),
        pytest.param("os._exit(0)", "died", "the process that ran it died (exit code 0)", marks=pytest.mark.slow),
        pytest.param(CONFUSING, "died", "its process sent an invalid message", marks=pytest.mark.slow),
        ("raise SystemExit(3)", "broken", "mine.py:2: SystemExit: 3: raise SystemExit(3)"),
    ],
)
def test_a_file_that_ends_or_confuses_its_process_is_a_finding(text: str, outcome: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import contextlib, os\n{text}\n")
    (told,) = run_kernel_test(simulated(path))
    assert (told.case, told.outcome, told.sentence) == ("loading", outcome, sentence)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (at % 4 > 0)) for at, name in enumerate(PLANTED)])
def test_a_planted_mistake_is_reported_with_its_reason(name: str, tmp_path: Path) -> None:
    edit = PLANTED[name]
    found = findings(edit.write(tmp_path))
    assert re.fullmatch(edit.simulated, verdict(found)) and found[-1].outcome == edit.outcome, verdict(found)


def test_a_kernel_with_numbas_own_names_is_simulated(tmp_path: Path) -> None:
    path, text = tmp_path / "mine.py", (FOLDER / BY_VERTEX).read_text()
    ours = "    from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit\n"
    assert ours in text
    path.write_text(
        text.replace(
            ours,
            "    from numba import cuda, float32, int32; from numba.cuda import jit\n"
            "    NUMBER = {'int32': int32, 'float32': float32}\n",
        )
    )
    assert verdict(findings(path)) == "right in all 11 cases, up to n = 11"


QUICK = ("1 x 1 threads", "4 x 4 threads, atomic", "two lanes, tile 4")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in RIGHT_KERNELS])
def test_a_right_kernel_is_called_right(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RIGHT_KERNELS[name])
    found = findings(path)
    assert verdict(found).startswith("right in all "), verdict(found)


def test_cuda_source_is_left_out_without_a_gpu(tmp_path: Path) -> None:
    for suffix in (".cu.py", ".cu"):
        (tmp_path / f"mine{suffix}").write_text((EXAMPLES / f"one_thread{suffix}").read_text())
    found = findings(tmp_path / "mine.cu.py")
    assert [finding.outcome for finding in found] == ["right", "left out"], "the plan is checked all the same"
    assert verdict(found).startswith("all graphs: skipped: the simulator does not support")
