"""Samplers of a live session: telemetry with restarts, and warps after a run."""

import errno
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import model_of, run_started
from stand_ins import HeardChild

from fwtui.common.child_process import StartError
from fwtui.engine.engine import HostEngine
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.experiment.experiment import Experiment, as_it_ran, changed, settle
from fwtui.live import ncu
from fwtui.live.samplers import MAX_SECONDS, RESTARTS, Sampling, WarpSampling
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import RunRequest, SampleRequest
from fwtui_kernels.plan import Cost, Step, Target


@pytest.fixture
def begun() -> list[HeardChild]:
    """Return all samplers that were started."""
    return []


def starter(begun: list[HeardChild]) -> Any:
    def start(module: str, arguments: Sequence[str], environment: Mapping[str, str] | None) -> HeardChild:
        begun.append(HeardChild(module, arguments, 100.0, environment))
        return begun[-1]

    return start


def sampling(begun: list[HeardChild], hz: float = 10, clock: Sequence[float] = (100.0,)) -> Sampling:
    """Return a sampling whose time is the last element of `clock`."""

    return Sampling(starter(begun), hz, FIRST_GPU, lambda: clock[-1])


def test_telemetry_follows_the_gpus_of_the_run(begun: list[HeardChild]) -> None:
    kept = sampling(begun)
    kept.restart_if_due()
    first = kept.child
    assert first is not None and begun[0].arguments == ["--hz", "10", "--device", "0"]
    assert kept.follow((FIRST_GPU,)) is None and kept.child is first
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is first and first.exit_code == 0 and kept.child is None
    kept.restart_if_due()
    assert [child.arguments for child in begun[1:]] == [["--hz", "10", "--device", "2,0"]]
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is None and kept.child is not None


def test_a_sampler_that_cannot_be_started_is_reported_once_a_delay() -> None:
    def fail(*given: Any) -> Any:
        raise StartError(OSError(errno.EACCES, "Permission denied"), "/opt/python")

    clock = [100.0]
    sampling = Sampling(fail, 10, FIRST_GPU, lambda: clock[-1])
    for seconds in (2, 4):
        sampling.restart_if_due()
        fault = sampling.died(7.0)
        said = f"the process python was not started: permission denied; it starts again in {seconds} s"
        assert fault == events.Fault(t=7.0, source="sampler", code="died", message=said)
        sampling.restart_if_due()
        assert sampling.died(7.0) is None
        clock.append(clock[-1] + seconds)
    of_warps = WarpSampling(fail, lambda: True)
    of_warps.mode = "auto"
    of_warps.prepare_for(DONE)
    assert of_warps.begin(model(), DONE, False) == events.Sampled(
        t=0.0, run=7, note="the process python was not started: permission denied"
    )


def test_every_sampler_learns_which_process_measures(begun: list[HeardChild]) -> None:
    kept = sampling(begun)
    kept.measures((7,))
    kept.restart_if_due()
    assert begun[0].heard == [b"7\n"]
    kept.measures((8,))
    kept.follow((DeviceId("cuda", 1),))
    kept.restart_if_due()
    assert [child.heard for child in begun] == [[b"7\n", b"8\n"], [b"8\n"]]


def test_a_dead_sampler_restarts_with_growing_delays_and_then_stops(begun: list[HeardChild]) -> None:
    clock = [100.0]
    kept = sampling(begun, clock=clock)
    said = []
    for death in range(1, RESTARTS + 2):
        kept.restart_if_due()
        child: Any = kept.child
        assert child is not None and kept.died(7.0) is None, "it lives"
        child.exit_code = -11
        child.lines.append("the last")
        assert kept.died(7.0) is None, "it still has something to say"
        child.lines.clear()
        fault = kept.died(7.0)
        assert fault is not None and (fault.t, fault.source, fault.code) == (7.0, "sampler", "died")
        said.append(fault.message.rpartition("; ")[2])
        clock.append(clock[-1] + 2.0**death - 0.01)
        kept.restart_if_due()
        assert kept.child is None, "not yet"
        clock.append(clock[-1] + 0.02)
    assert said == [*(f"it starts again in {2**death} s" for death in range(1, RESTARTS + 1)), "telemetry stops"]
    clock.append(clock[-1] + 1e6)
    kept.restart_if_due()
    assert kept.child is None and len(begun) == RESTARTS + 1


ASKED = as_it_ran(Experiment(kernel="katz-kider", n=256, tile=32, launch="eager"), FIRST_GPU)
DONE = RunRequest(7, ASKED)


def model(state: str = "done", seconds: float | None = 0.001) -> Model:
    """Return a model with that run."""
    done = events.RunDone(t=1.0, run=7, outcome=state, median=seconds, count=1)
    return model_of([run_started(ASKED, 7, backend="cuda"), done])


def made(mode: str = "auto", permitted: bool = True) -> tuple[WarpSampling, list[Any]]:
    begun: list[Any] = []
    sampling = WarpSampling(starter(begun), lambda: permitted)
    sampling.mode = mode
    return sampling, begun


@pytest.mark.parametrize(("devices", "gpu"), [("", 0), ("1,0", 1)])
def test_a_run_is_sampled_by_a_process_that_is_begun_before_it_ends(devices: str, gpu: int) -> None:
    sampling, begun = made()
    asked = as_it_ran(changed(ASKED, devices=devices), DeviceId("cuda", gpu))
    request = RunRequest(7, asked)
    sampling.prepare_for(request)
    assert len(begun) == 1 and begun[0].heard == []
    sampling.open(model(), request)
    sampling.begin(model(), request, False)
    assert sampling.run == 7 and sampling.over() is None
    ahead = SampleRequest(7, asked, "", 256, ahead=True)
    assert begun[0].heard == [ahead, SampleRequest(7, asked, "", 256, 0.001, MAX_SECONDS, True)]
    sampling.finished()
    assert sampling.run is None and begun[0].exit_code == 0, "it holds the GPU no longer than it samples"
    assert len(begun) == 1, "not where the session closes"
    sampling.prepare_next()
    sampling.prepare_next()
    assert len(begun) == 2 and begun[1].heard == [], "the next one imports"
    sampling.mode = "on"
    sampling.prepare_for(DONE)
    sampling.begin(model(), DONE, False)
    assert sampling.run == 7 and len(begun) == 2
    assert begun[1].heard[-1].most_seconds == 0.0


@pytest.mark.parametrize(
    ("wanted", "given", "asked"),
    [
        ("off", model(), ASKED),
        ("on", model("cancelled"), ASKED),
        ("on", model("failed"), ASKED),
        ("on", model(seconds=None), ASKED),
        ("on", model(), as_it_ran(Experiment(kernel="tiled-cpu"), CPU)),
    ],
)
def test_other_runs_are_not_sampled_and_an_opened_gpu_is_closed(wanted: str, given: Model, asked: Any) -> None:
    sampling, begun = made(wanted)
    request = RunRequest(7, asked)
    sampling.prepare_for(request)
    sampling.open(model(), request)
    assert sampling.begin(given, request, False) is None
    assert sampling.run is None and sampling.child is None and all(one.exit_code == 0 for one in begun)


@pytest.mark.parametrize("ranks", [1, 3])
def test_of_several_ranks_the_first_is_sampled_without_the_others(ranks: int) -> None:
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    from fwtui.measure import pc_sampling, warp_sampling_process

    place = pc_sampling.InstructionPlace(1, "f", 16)

    def samples(period: int, launch: Callable[[], None]) -> Any:
        launch()
        return pc_sampling.PcSamples({place: {"wait": 3, "selected": 1}}, 0)

    sampler = cast(pc_sampling.PcSampler, SimpleNamespace(samples=samples))
    context = warp_sampling_process.SampledContext(HostEngine(Target("cpu")), sampler)
    asked = as_it_ran(settle(Experiment(kernel="distributed-cpu", n=100, tile=32, devices=",".join(["cpu"] * ranks))), CPU)
    told: list[Any] = []
    assert warp_sampling_process.sample(SampleRequest(7, asked, vertices=100, seconds=0.001), context, told.append) == ""
    found = [one for one in told if isinstance(one, events.WarpSamples)]
    assert {one.op for one in found} == {"pivot", "row", "column", "rest"}
    assert {one.rank for one in found} == ({0} if ranks > 1 else {None})
    assert all(one.reasons == {"wait": 3, "selected": 1} for one in found)


def test_the_longest_op_is_sampled_before_the_second_is_over_and_more_coarsely_where_the_buffer_was_full() -> None:
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    from fwtui.measure import pc_sampling, warp_sampling_process

    periods: list[int] = []

    def samples(period: int, launch: Callable[[], None]) -> Any:
        launch()
        periods.append(period)
        return pc_sampling.PcSamples({pc_sampling.InstructionPlace(1, "f", 16): {"wait": 3}}, 0, full=len(periods) == 1)

    context = warp_sampling_process.SampledContext(
        HostEngine(Target("cpu")), cast(pc_sampling.PcSampler, SimpleNamespace(samples=samples))
    )
    asked = as_it_ran(settle(Experiment(kernel="tiled-cpu", n=100, tile=32)), CPU)
    request, told = SampleRequest(7, asked, vertices=100, seconds=0.001, most_seconds=1.0), list[Any]()
    note = warp_sampling_process.sample(request, context, told.append, until=0.0)
    assert note == "pivot, panels not sampled, as that takes longer than 1.00 s; pass --samples on"
    assert [one.op for one in told if isinstance(one, events.WarpSamples)] == ["rest"]
    assert periods[1] == periods[0] + warp_sampling_process.COARSER and told[0].cycles == 1 << periods[1]


def test_ops_of_similar_time_with_separate_functions_are_sampled_together() -> None:
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    from fwtui.measure.pc_sampling import InstructionPlace, PcSamples
    from fwtui.measure.warp_sampling_process import SampledLaunches, group_launches

    def launches(op: str, period: int, *functions: str) -> SampledLaunches:
        return SampledLaunches(Step(op, op, (), Cost(1, 1), (), ()), 1, period, frozenset((1, name) for name in functions))

    given = launches("rest", 12, "f"), launches("row", 10, "g"), launches("column", 10, "g"), launches("pivot", 8, "h")
    assert [[one.step.op for one in together] for together in group_launches(given)] == [["pivot", "row"], ["column", "rest"]]
    unknown = launches("rest", 10), launches("row", 10)
    assert [len(together) for together in group_launches(unknown)] == [1, 1]
    places = {InstructionPlace(crc, name, 16): {"wait": 1} for crc, name in ((1, "f"), (1, "g"), (2, "f"))}
    assert list(PcSamples(places, 3).of({(1, "f")}).by_place) == [InstructionPlace(1, "f", 16)]


def test_cached_code_is_disassembled_before_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    from fwtui.measure import warp_sampling_process
    from fwtui_kernels.compiled import cubin_cache

    begun: list[bytes] = []
    asked = as_it_ran(settle(Experiment(kernel="katz-kider", n=256)), FIRST_GPU)
    monkeypatch.setattr(warp_sampling_process, "disassembler", lambda: SimpleNamespace(begin=begun.append))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    engine, ahead = HostEngine(Target("cuda", (9, 0), multiprocessors=132)), SampleRequest(7, asked, vertices=256, ahead=True)
    warp_sampling_process.prepare_disassembly(ahead, engine)
    assert begun == []
    kernel, shape, _ = warp_sampling_process.plan_request(ahead, engine)
    function = cast(Any, engine.build(kernel, shape)).ops["rest"].function
    types = ("array(float32, 2d, C)", "int32")
    name = cubin_cache.key(function.py_func, function.targetoptions, types, (9, 0))
    cubin_cache.store(cubin_cache.folder(str(tmp_path)), name, cubin_cache.CompiledCode("rest", b"\x7fELF"))
    warp_sampling_process.prepare_disassembly(ahead, engine)
    assert begun == [b"\x7fELF"]


def test_without_permission_sampling_does_not_start_and_the_fix_is_named() -> None:
    sampling, begun = made(permitted=False)
    sampling.prepare_for(DONE)
    assert sampling.begin(model(), DONE, False) == events.Sampled(t=0.0, run=7, note=ncu.FORBIDDEN)
    assert begun == [] and sampling.run is None


def test_the_death_and_the_cancellation_of_a_sampler_are_reported_once() -> None:
    sampling, begun = made()
    sampling.begin(model(), DONE, False)
    assert sampling.over() is None
    begun[0].exit_code = -11
    told = sampling.over()
    assert told is not None and told.note.startswith("the sampling process died (signal 11, segmentation fault)")
    assert sampling.over() is None and sampling.run is None and sampling.child is None
    sampling.begin(model(), DONE, False)
    sampling.cancel()
    assert begun[1].exit_code == -9
    told = sampling.over()
    assert told is not None and told.note == "cancelled"
