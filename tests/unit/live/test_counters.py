"""Hardware counters: the arguments of ncu, also during a session, its parsed output, and their events."""

import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import psutil
import pytest
from builders import model_of, run_started
from pretending import Pretend
from stand_ins import FakeTool

from fwtui.__main__ import main
from fwtui.analysis.report import result
from fwtui.common.errors import Refused
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import Experiment, as_it_ran, settle
from fwtui.live import counters, ncu
from fwtui.live.counters import METRICS, counter_text, measure, read
from fwtui.live.session import Live, Profile
from fwtui.measure.repetitions import representatives
from fwtui.stream import events
from fwtui.stream.requests import ProfiledLaunch, ProfileRequest
from fwtui_kernels import registry
from fwtui_kernels.plan import Cost, Step

TIME, CONFLICTS, HITS = (
    "gpu__time_duration.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__t_sector_hit_rate.pct",
)
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INTEGERS, SHARED = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum", "sm__sass_data_bytes_mem_shared_op_ld.sum"
READ, READ_OP = "dram__bytes_read.sum", "dram__bytes_op_read.sum"
FIRST = ("ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
MANGLED = "_ZN7kernels14k45_katz_kider5build12_3clocals_3e{}E5ArrayIfLi2E1C7mutable7alignedEi"


def page(*kernels: tuple[str, tuple[str, ...]], names: tuple[str, ...], units: tuple[str, ...]) -> str:
    """Return a wide raw page with the other lines that ncu prints."""

    def line(cells: tuple[str, ...]) -> str:
        return ",".join(f'"{cell}"' for cell in cells)

    rows = [
        "==PROF== Connected to process 4711 (/usr/bin/python3.11)",
        '==PROF== Profiling "pivot" - 0: 0%....50%....100% - 9 passes',
        line((*FIRST, *names)),
        line(("",) * len(FIRST) + units),
    ]
    for index, (kernel, values) in enumerate(kernels):
        first = (str(index), "4711", "python3.11", kernel, "1", "13", "(32, 8, 1)", "(128, 1, 1)", "0", "9.0")
        rows.append(line((*first, *values)))
    return "\n".join([*rows, "==PROF== Disconnected from process 4711", ""])


PAGE = page(
    (MANGLED.format("5pivotB2v1"), ("12864", "0", "77.5", "1000", "n/a")),
    (MANGLED.format("4restB2v2"), ("1,286,400", "16", "n/a", "4,000,000", "65536")),
    names=(TIME, CONFLICTS, HITS, INTEGERS, SHARED),
    units=("nsecond", "", "%", "inst", "byte"),
)


class TestWords:
    def test_a_wide_page_with_units_of_any_version(self) -> None:
        assert ncu.rows(PAGE) == [
            {TIME: pytest.approx(12864e-9), CONFLICTS: 0, HITS: pytest.approx(0.775), INTEGERS: 1000},
            {TIME: pytest.approx(1286400e-9), CONFLICTS: 16, INTEGERS: 4e6, SHARED: 65536},
        ]
        names = (TIME, READ, "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second")
        for units, factor in ((("ns", "byte", "byte/s"), 1), (("us", "Kbyte", "Kbyte/ms"), 1000)):
            row = ncu.rows(page(("k", ("5", "6", "7")), names=names, units=units))[0]
            assert row[TIME] == pytest.approx(5e-9 * factor) and row[READ] == 6 * factor
            assert row[names[2]] == pytest.approx(7 if factor == 1 else 7e6)

    def test_output_of_the_program_is_not_a_kernel_and_every_process_has_a_header(self) -> None:
        noise = 'hello, world\n"3","4"\n"","",""\n'
        assert ncu.rows(noise + PAGE + noise) == ncu.rows(PAGE)
        assert ncu.rows(noise) == ncu.rows("") == []
        other = page(("k", ("8",)), names=(CONFLICTS,), units=("",))
        assert [len(row) for row in ncu.rows(PAGE + other)] == [4, 4, 1]
        assert ncu.errors("==PROF== fine\n==ERROR== one thing \n x\n==ERROR== another\n") == ["one thing", "another"]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1234", 1234), ("1,234", 1234), ("1,234.5", 1234.5), ("1,215,000,000.00", 1.215e9), ("65.77", 65.77),
            ("1.5e+09", 1.5e9), ("0", 0), (" 7 ", 7), ("-3", -3),
            ("n/a", None), ("", None), ("nan", None), ("inf", None), ("-", None), ("12 (3; 9)", None), ("0x10", None),
            ("1_000", None), ("65,77", None),
        ],
    )  # fmt: skip
    def test_numbers_are_parsed_in_every_format(self, text: str, value: float | None) -> None:
        assert ncu.number(text) == (value if value is None else pytest.approx(value))


def test_derived_counters_have_units_and_need_measured_inputs() -> None:
    row = {TIME: 1e-3, INTEGERS: 4e9, SHARED: 2e9, WAVEFRONTS: 1e6, READ_OP: 100.0, "dram__bytes_write.sum": 50.0}
    got = read(ProfiledLaunch("rest", 2_000_000_000), row)
    assert got["gops"] == pytest.approx(4000)
    assert got["integer_instructions_per_relaxation"] == 2
    assert got["shared_load_bytes_per_second"] == pytest.approx(128e9), "as the banks see it, not as the threads do"
    assert got["shared_load_bytes"] == 2e9
    assert (got["dram_read_bytes"], got["dram_write_bytes"], got["dram_bytes"]) == (100, 50, 150)
    assert "shared_store_bytes_per_second" not in got and "l1_hit_rate" not in got
    assert read(ProfiledLaunch("x", 0), {INTEGERS: 5.0}) == {"integer_instructions": 5, "relaxations": 0}
    assert read(ProfiledLaunch("x", 1), {TIME: 0.0, INTEGERS: 1e16})["seconds"] == 0
    assert "integer_instructions" not in read(ProfiledLaunch("x", 1), {INTEGERS: 1e16}), "an event cannot state it"
    names = [name for metric in METRICS for name in metric.names.split()]
    assert len({m.key for m in METRICS}) == len(METRICS) and len(set(names)) == len(names)
    by_key = {m.key: m for m in METRICS}
    values = {"occupancy": 0.25, "seconds": 1e-3, "dram_read_bytes": 2048.0, "gops": 1234.0, "shared_load_conflicts": 0.0}
    assert [counter_text(by_key[k], values) for k in values] == ["25.0 %", "1.00 ms", "2.00 KiB", "1234 GOPS", "0"]
    assert counter_text(by_key["l1_hit_rate"], values) == "n/a"


class TestRepresentatives:
    @staticmethod
    def steps(*told: tuple[str, int]) -> list[Step]:
        return [Step(op, "all", (), Cost(relaxations, 0), (), ()) for op, relaxations in told]

    def test_the_middle_one_of_the_largest(self) -> None:
        plan = self.steps(("a", 1), ("b", 5), ("a", 9), ("a", 9), ("a", 9), ("b", 2), ("a", 1))
        assert representatives(plan) == {3: "a", 1: "b"}


LAUNCHES = "".join(
    f"{msgspec.json.encode(launch).decode()}\n" for launch in (ProfiledLaunch("pivot", 1000), ProfiledLaunch("rest", 1_000_000))
)
PERMISSION = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"


KATZ = settle(Experiment(kernel="katz-kider", n=512, options={"threads": 64}))


class TestMeasure:
    def test_one_launch_of_each_op_is_profiled_with_its_metrics(self, tool: FakeTool) -> None:
        tool.answers({"log": PAGE, "stdout": "noise\n" + LAUNCHES})
        found = measure(KATZ)
        assert isinstance(found, dict) and list(found) == ["pivot", "rest"]
        assert found["pivot"]["l1_hit_rate"] == pytest.approx(0.775) and "l1_hit_rate" not in found["rest"]
        assert found["rest"]["integer_instructions_per_relaxation"] == 4
        assert found["rest"]["gops"] == pytest.approx(4e6 / 1286400e-9 / 1e9)
        tool.answers({"log": PAGE, "stdout": LAUNCHES})
        measure(KATZ)
        asked = tool.call()
        option = dict(pairwise(asked))
        assert option["--clock-control"] == option["--cache-control"] == "none"
        assert (option["--profile-from-start"], option["--page"], option["--print-units"]) == ("off", "raw", "base")
        assert set(option["--metrics"].split(",")) == {m.names.split()[0] for m in METRICS if m.names}
        *program, request = asked[asked.index(sys.executable) :]
        experiment, own = (json.loads(request)[name] for name in ("experiment", "own"))
        assert program == [sys.executable, "-P", "-m", "fwtui.measure.profile_process"]
        assert experiment["options"] == {"threads": 64} and experiment["launch"], "it is settled"
        assert own == "", "a rung has no file of the user's"

    def test_a_missing_metric_is_requested_by_its_other_name_or_omitted(self, tool: FakeTool) -> None:
        complaint = {"log": f"==ERROR== Failed to find metric {READ}\n==ERROR== Failed to find metric '{HITS}'.\n", "code": 1}
        tool.answers(complaint, {"log": PAGE, "stdout": LAUNCHES})
        assert isinstance(measure(KATZ), dict)
        asked = tool.call(1)[tool.call(1).index("--metrics") + 1].split(",")
        assert READ not in asked and READ_OP in asked and HITS not in asked and TIME in asked

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"log": PERMISSION, "code": 1}, "NVreg_RestrictProfilingToAdminUsers=0"),
            ({"log": "", "stderr": "fwtui: n = 512 needs more; choose n up to 24\n", "code": 2}, "n = 512 needs more"),
            ({"log": "==ERROR== The driver is too old\n", "code": 1}, "ncu failed: The driver is too old"),
            ({"log": "", "code": 9}, "exit code 9"),
            ({"log": "==WARNING== No kernels were profiled.\n", "stdout": LAUNCHES, "code": 0}, "no counters"),
            ({"log": PAGE, "stdout": LAUNCHES.splitlines()[0]}, "2 kernels, but 1"),
            ({"log": "==ERROR== \x1b[31mred", "code": 1}, "ncu failed: [31mred"),
        ],
    )
    def test_a_failure_is_one_sentence(self, tool: FakeTool, answer: dict[str, Any], words: str) -> None:
        tool.answers(answer)
        told = measure(KATZ)
        assert isinstance(told, str) and words in told and "\n" not in told

    def test_a_profiler_that_does_not_end_is_ended(self, tool: FakeTool) -> None:
        tool.answers({"log": "", "sleep": True})
        told = measure(KATZ, most_seconds=0.5)
        assert isinstance(told, str) and "0.5 s" in told

    def test_runs_without_counters_are_refused(self, tool: FakeTool, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
        assert "serial runs on the CPU" in str(measure(as_it_ran(Experiment(kernel="serial"), CPU)))
        assert "there is no kernel" in str(measure(as_it_ran(Experiment(kernel="nothing"), CPU)))
        assert "simulator" in str(measure(as_it_ran(Experiment(kernel="naive", n=8, device="simulator"), CPU)))
        monkeypatch.setattr(ncu, "find", lambda: None)
        assert measure(KATZ) == ncu.ABSENT
        monkeypatch.setattr(ncu, "permitted", lambda: False)
        assert measure(KATZ) == ncu.FORBIDDEN
        pretend.gpus()
        assert "need a GPU (there is no GPU here)" in str(measure(KATZ))
        assert not list(tool.folder.glob("call-*"))


class TestPermission:
    @pytest.mark.parametrize(
        ("parameters", "held", "allowed"),
        [
            ("RmProfilingAdminOnly: 1\n", "0000000000000000", False),
            ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", False),  # root in a container
            ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", True),
            ("ModifyDeviceFiles: 1\nRmProfilingAdminOnly: 0\n", "0000000000000000", True),
            (None, "0000000000000000", True),
        ],
    )
    def test_profiling_needs_permission(self, tmp_path: Path, parameters: str | None, held: str, allowed: bool) -> None:
        if parameters is not None:
            (tmp_path / "parameters").write_text(parameters)
        (tmp_path / "privileges").write_text(f"Name:\tpython\nCapEff:\t{held}\nCapBnd:\t0\n")
        assert ncu.permitted(tmp_path / "parameters", tmp_path / "privileges") is allowed

    def test_ncu_is_searched_in_known_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def put(*parts: str) -> Path:
            path = tmp_path.joinpath(*parts)
            path.parent.mkdir(parents=True)
            path.touch(0o755)
            return path

        for variable in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        places = (f"{tmp_path}/compute/*/ncu",)
        assert ncu.find(places) is None
        put("compute", "2025.9.1", "ncu")
        newest = put("compute", "2025.10.0", "ncu")
        put("compute", "2026.1", "readme")
        assert ncu.find(places) == str(newest)
        named = put("toolkit", "bin", "ncu")
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
        assert ncu.find(places) == str(named)
        first = put("bin", "ncu")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{tmp_path / 'empty'}")
        assert ncu.find(places) == str(first)


class TestCommand:
    @pytest.mark.slow
    def test_a_run_keeps_its_counters_in_the_session(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked: list[Experiment] = []
        answers = iter([{"all": {"occupancy": 0.5}}, "the reason"])

        def fake(experiment: Experiment, stop: Event) -> Any:
            asked.append(experiment)
            return next(answers)

        monkeypatch.setattr(counters, "measure", fake)
        session = tmp_path / "a.fwt.jsonl"
        words = ["run", "-k", "serial,scipy", "-n", "20", "--repeats", "1", "--counters", "--json", "--record", str(session)]
        assert main(words) == 0
        told = capsys.readouterr()
        first, second = map(json.loads, told.out.splitlines())
        assert first["counters"] == {"all": {"occupancy": 0.5}} and second["counters"] == {}
        assert "run 1 has counters (profiled: not timings)" in told.err and "run 2 has no counters: the reason" in told.err
        assert [e.kernel for e in asked] == ["serial", "scipy"] and asked[0].launch
        assert main(["check", str(session)]) == 0
        capsys.readouterr()
        assert main(["replay", str(session), "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[0])["counters"] == first["counters"]


def test_a_later_count_of_an_op_replaces_the_earlier() -> None:
    counted = ((1, "a", 1.0), (1, "b", 2.0), (1, "a", 3.0), (7, "a", 9.0))
    told = [events.Counters(t=1, run=run, op=op, values={"x": value}) for run, op, value in counted]
    model = model_of([run_started(Experiment(kernel="naive"), backend="cuda"), *told])
    assert result(model, model.runs[1])["counters"] == {"b": {"x": 2.0}, "a": {"x": 3.0}}


def test_the_profiled_program_launches_each_op_once_under_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = pytest.importorskip("fwtui.measure.profile_process", exc_type=ImportError)
    from fwtui.engine.engine import HostEngine
    from fwtui_kernels.plan import Target
    from fwtui_kernels.programs.cpu_program import CpuProgram

    done: list[tuple[str, tuple[int, ...]]] = []
    on = [False]
    launch = CpuProgram.launch

    def watched(self: Any, step: Step, buffers: Any, stream: Any) -> None:
        if on[0]:
            done.append((step.op, step.args))
        launch(self, step, buffers, stream)

    def switch(value: bool) -> None:
        on[0] = value

    monkeypatch.setattr(CpuProgram, "launch", watched)
    monkeypatch.setattr(counted, "engine_for", lambda gpu: HostEngine(Target("cpu")))
    profiler = SimpleNamespace(start_profiler=lambda: switch(True), stop_profiler=lambda: switch(False))
    monkeypatch.setattr(counted, "driver_calls", profiler)
    experiment = settle(Experiment(kernel="tiled-cpu", n=80, tile=16))
    told: list[ProfiledLaunch] = []
    counted.count(ProfileRequest(experiment), cast(Any, SimpleNamespace(send=told.append)))
    plan = list(registry()["tiled-cpu"].plan(experiment.shape(80), False))
    chosen = representatives(plan)
    assert done == [(plan[index].op, plan[index].args) for index in sorted(chosen)]
    assert [launch.op for launch in told] == [op for op, _ in done]
    assert [launch.relaxations for launch in told] == [plan[index].cost.relaxations for index in sorted(chosen)]


def after_a_run(telemetry_hz: float = 0, profile: Profile | None = None) -> Live:
    session = Live(telemetry_hz=telemetry_hz, profile=profile)
    session.emit(run_started(KATZ, backend="cuda"))
    session.emit(events.RunDone(t=1, run=1, outcome="done"))
    session.experiments[1] = KATZ
    return session


def drained(live: Live) -> list[str]:
    deadline = time.monotonic() + 120
    while live.busy:
        assert time.monotonic() < deadline
        live.drain()
        time.sleep(0.01)
    return [n.text for n in live.model.log]


def test_counters_are_events_when_they_arrive() -> None:
    live = after_a_run(profile=lambda experiment, stop: {"rest": {"occupancy": 0.5}})
    live.count(1)
    assert live.busy
    with pytest.raises(Refused, match="run 1 are being profiled"):
        live.start(live.settled(Experiment(kernel="serial", n=4)))
    assert drained(live) == ["the counters of run 1 are ready"]
    assert live.model.runs[1].counters == {"rest": {"occupancy": 0.5}}


@pytest.mark.parametrize("outcome", ["the reason", ValueError("the reason")])
def test_missing_counters_have_a_reason(outcome: str | Exception) -> None:
    def measured(experiment: Experiment, stop: Event) -> str:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    live = after_a_run(profile=measured)
    live.count(1)
    told = drained(live)
    assert len(told) == 1 and told[0].startswith("run 1 has no counters: ") and told[0].endswith("the reason")
    assert live.model.runs[1].counters == {}


def test_cancel_ends_the_profiler_and_what_it_profiles(tool: FakeTool) -> None:
    live = after_a_run()
    tool.answers({"log": "", "sleep": True})
    live.count(1)
    while not (tool.folder / "call-0").exists():
        time.sleep(0.01)
    profiler = next(p for p in psutil.Process().children() if str(tool.path) in p.cmdline())
    live.cancel()
    assert drained(live) == ["run 1 has no counters: the profiler was stopped"]
    assert not profiler.is_running() or profiler.status() == psutil.STATUS_ZOMBIE


def test_telemetry_pauses_during_profiling() -> None:
    go_on = Event()
    live = after_a_run(telemetry_hz=20, profile=lambda experiment, stop: "waited" if go_on.wait(120) else "never")
    try:
        live.drain()
        assert live.sampling.child is not None
        live.count(1)
        live.drain()
        assert live.sampling.child is None
        go_on.set()
        assert drained(live) == ["run 1 has no counters: waited"]
        live.drain()
        assert live.sampling.child is not None
    finally:
        live.close()
