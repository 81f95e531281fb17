"""Peak rates of a device: storage, measurement in a session, and the share that a run reaches."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from builders import apply_all, run_events, run_started
from msgspec.structs import replace
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.analysis import limits
from fwtui.analysis.columns import PRINTED_HEAD, printed
from fwtui.analysis.limits import limit_of
from fwtui.analysis.report import result
from fwtui.commands.doctor import limit_lines
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.live.session import Live
from fwtui.machine import hardware
from fwtui.stream import events, requests
from fwtui.stream.events import FormLimit, Limits
from fwtui.stream.model import Model

sys.path.insert(0, str(Path(__file__).parents[1]))
from stand_ins import StubChild, answering

RATES = {"float32": 14e12, "float32-two": 17e12, "int32": 16e12, "int16": 33e12}
FORMS = tuple(FormLimit(form, rate, 1980.0) for form, rate in RATES.items())
GPU = Limits(t=0.0, backend="cuda", device="NVIDIA H200", forms=FORMS, copy_bytes_per_second=4e12, complete=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_noisy_limit_is_stored_and_shown_as_noisy_until_a_quiet_one_comes(cache: Path) -> None:
    levels = (events.LevelLimit(2, 1e11, 5e10, noisy=True), events.LevelLimit(0, 2e10, 1e10))
    noisy = replace(CPU, forms=(FormLimit("int32", 1e11, noisy=True),), levels=levels, copy_noisy=True)
    kept = limits.save(noisy)
    assert limits.load(CPU.device_id) == replace(noisy, t=0.0) and "measure them again" in limits.noise(kept)
    shown = "\n".join(limit_lines(kept))
    assert (
        shown.count("(noisy)") == 3 and "other programs ran" in shown and limits.describe_peaks(kept) == ["int32 100 G (noisy)"]
    )
    model = Model()
    model.apply(noisy)
    assert result(model, run_of(model, "int32", backend="cpu"))["limit_noisy"] is True
    quiet = replace(
        noisy, forms=(FormLimit("int32", 9e10),), levels=(events.LevelLimit(2, 9e10, 6e10), levels[1]), copy_noisy=False
    )
    best = limits.save(quiet)
    assert best.forms == (FormLimit("int32", 1e11),) and best.levels[0] == events.LevelLimit(2, 1e11, 6e10)
    assert not limits.noise(best) and not limits.noise(limits.save(noisy)), "it is known to be at least that much"


def run_of(model: Model, dtype: str, low: float = 1.0, backend: str = "cuda") -> Any:
    number = len(model.runs) + 1
    graph = events.Graph(t=1.0, run=number, vertices=1024, edges=9, low=low, high=16.0)
    e = Experiment(kernel="naive", dtype=dtype, n=1024)
    return apply_all(model, run_events(e, graph, run=number, t=2.0, backend=backend, passes=[1e-3, 1e-3])).runs[number]


def test_a_run_is_compared_with_the_fastest_correct_form() -> None:
    model = Model()
    bare = run_of(model, "float32")
    assert limit_of(model, bare) is None and result(model, bare)["share_of_limit"] is None
    assert printed(model, bare)[PRINTED_HEAD.index("% of peak")] == "n/a"
    model.apply(GPU)
    for dtype, low, form, rate in (
        ("float32", 1.0, "float32-two", 17e12),
        ("float32", 0.0, "float32-two", 17e12),
        ("float32", -3.0, "float32", 14e12),
        ("int32", -3.0, "int32", 16e12),
        ("int16", 1.0, "int16", 33e12),
    ):
        run = run_of(model, dtype, low)
        limit = limit_of(model, run)
        assert limit is not None and (limit.form.key, limit.relaxations_per_second) == (form, rate)
        assert limit.share == pytest.approx(1024**3 / 1e-3 / rate)
        told = result(model, run)
        assert (told["limit_form"], told["limit_relaxations_per_second"]) == (form, rate)
        assert told["share_of_limit"] == limit.share
    assert limit_of(model, run_of(model, "int32", backend="cpu")) is None, "a CPU run is not held against a GPU"
    without = replace(GPU, forms=GPU.forms[:3])
    model.apply(without)
    packed = limit_of(model, run_of(model, "int16"))
    assert packed is not None and packed.form.key == "int32", "where nothing is packed"


def test_a_throttled_run_is_compared_with_the_throttled_peak_rate() -> None:
    model = Model()
    model.apply(GPU)
    run = run_of(model, "int32")
    for t in (2.0005, 2.0015):
        model.apply(events.Telemetry(t=t, gpu_clock_mhz=990.0))
    limit = limit_of(model, run)
    assert limit is not None and (limit.relaxations_per_second, limit.clock_mhz) == (8e12, 990.0)
    model.readings = {}
    model.apply(events.Telemetry(t=2.0005, gpu_clock_mhz=3.0))
    limit = limit_of(model, run)
    assert limit is not None and (limit.relaxations_per_second, limit.clock_mhz) == (16e12, 1980.0), "no clock is that slow"
    assert limit_of(model, replace(run, done=None, samples=())) == limit._replace(share=None), "no time yet"


def test_limits_are_kept_for_one_device_and_not_lowered_by_a_busy_machine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(GPU, backend="cpu")
    assert limits.load(CPU.device_id) is None
    limits.save(replace(whole, complete=False))
    limits.save(replace(whole, note="the GPU reported an error"))
    assert limits.load(CPU.device_id) is None, "what failed is tried again"
    limits.save(whole)
    assert limits.load(CPU.device_id) == whole
    machine = hardware.machine()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(hardware, "machine", lambda: replace(machine, cpu="another processor"))
        assert limits.load(CPU.device_id) is None
    (file,) = cache.rglob("*.facts")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    assert limits.load(CPU.device_id) is None
    forms = tuple(FormLimit(f.form, rate) for f, rate in zip(GPU.forms, (1e9, 99e12, 1e9, 1e9), strict=True))
    busy = replace(CPU, forms=forms, copy_bytes_per_second=1.0)
    limits.save(replace(CPU, forms=GPU.forms))
    live = live_with(busy)
    live.measure_limits(CPU.device_id)
    live.drain()
    best = live.model.measured[CPU.device_id]
    assert [f.relaxations_per_second for f in best.forms] == [14e12, 99e12, 16e12, 33e12]
    assert best.forms[0].clock_mhz == 1980.0 and best.copy_bytes_per_second == 4e12
    assert limits.load(CPU.device_id) == replace(best, t=0.0)
    live.close()


CPU = replace(GPU, backend="cpu", device="a processor", forms=(FormLimit("float32", 1e11),))


def answering_probes(*told: events.Event) -> Any:
    def answer(request: Any) -> Iterable[events.Event]:
        if isinstance(request, requests.RunRequest):
            return [events.RunDone(t=1.0, run=request.run, outcome="done")]
        assert isinstance(request, requests.ProbeRequest) and (request.backend, request.gpu) == ("cpu", 0)
        return told

    return answering(answer)


def live_with(*told: events.Event) -> Live:
    return Live(telemetry_hz=0, child=answering_probes(*told))


def test_a_live_session_measures_once_and_remembers(cache: Path) -> None:
    live = live_with(replace(CPU, complete=False), CPU)
    assert not live.send_limits(CPU.device_id)
    live.measure_limits(CPU.device_id)
    assert live.busy
    settled, worker = live.settled(Experiment(kernel="serial", n=8)), cast(StubChild, live.worker.child)
    assert live.start(settled) == 1 and len(worker.asked) == 1
    with pytest.raises(Refused, match="the peak rate is still being measured, and run 1 starts afterwards; cancel"):
        live.start(settled)
    live.drain()
    assert live.busy and live.model.measured.get(CPU.device_id) == CPU and worker.asked[1].run == 1
    live.drain()
    assert not live.busy
    live.close()
    later = live_with()
    assert later.send_limits(CPU.device_id) and later.model.measured[CPU.device_id].forms == CPU.forms
    recorder = later.record(path=cache / "session.fwt.jsonl")
    later.close()
    kinds = [json.loads(line)["kind"] for line in recorder.path.read_text().splitlines()]
    assert kinds == ["header", "limits", "end"], "a recording that begins later has them"


def test_another_gpu_is_not_compared_with_the_first_ones_peak_rates(cache: Path, pretend: Pretend) -> None:
    two = [events.Device(t=0, name=name, driver="580.1", multiprocessors=132) for name in ("one", "two")]
    pretend.gpus(*two)
    first, second = GPU.device_id, DeviceId("cuda", 1)
    limits.save(GPU)
    assert limits.load(second) is None
    live = live_with()
    assert live.send_limits(first) and live.model.measured[first].forms == GPU.forms
    assert not live.send_limits(second) and second not in live.model.measured
    live.emit(run_started(backend="cuda", gpu=1))
    assert live.model.watched == second and limit_of(live.model, live.model.runs[1]) is None, "a run on the other one"
    assert live.send_limits(first)
    limits.save(replace(GPU, gpu=1))
    assert limits.load(second) == replace(GPU, t=0.0, gpu=1), "kept for the GPU, whatever its number"
    live.close()


def test_a_probe_that_dies_or_is_cancelled_leaves_an_idle_session(cache: Path) -> None:
    live = live_with()
    live.measure_limits(CPU.device_id)
    cast(StubChild, live.worker.child).exit_code = -11
    live.drain()
    assert not live.busy and live.model.fault is not None and "signal 11" in live.model.fault.message
    live.measure_limits(CPU.device_id)
    live.start(live.settled(Experiment(kernel="serial", n=8)))
    live.cancel()
    live.drain()
    assert not live.busy and limits.load(CPU.device_id) is None and not live.model.runs
    live.close()


def test_doctor_reports_peak_rates(cache: Path, pretend: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) in (0, 1)
    assert "-> fwtui doctor --measure" in capsys.readouterr().out
    pretend.children(answering_probes(CPU))
    assert main(["doctor", "--measure"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CPU: a processor"
    assert [line.split("  ")[0] for line in lines[1:]] == ["form", "float32", "copy"]
    assert "100 Grelax/s" in lines[2] and "n/a" not in lines[2] and "4.00 TB/s" in lines[3]  # no clock was recorded
    main(["doctor"])
    assert "float32 100 G relaxations/s" in capsys.readouterr().out
    assert limits.describe_peaks(GPU) == ["float32 17.0 T", "int32 16.0 T", "int16 33.0 T"]
    failed = Limits(t=0.0, backend="cpu", complete=True, note="the probe is wrong")
    fault = events.Fault(t=0.0, source="worker", code="error", message="the probe is wrong")
    pretend.children(answering_probes(fault, failed))
    assert main(["doctor", "--measure"]) == 4
    assert "the probe is wrong" in capsys.readouterr().err
