"""The model: the same after live, replay and any seeking, for all events; and means of telemetry over a time window."""

import runpy
from collections.abc import Iterator
from typing import Any

import pytest
from builders import apply_all, model_of, occupancy, run_started
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from processes import DATA

from fwtui.analysis import report
from fwtui.analysis.columns import outcome, printed
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.stream import codec, events
from fwtui.stream.codec import Unknown
from fwtui.stream.model import Model, ModelLimits, averaged_within, merged
from fwtui.stream.run import MAX_GATHERED, MAX_OPS, MAX_PHASES, Run
from fwtui.stream.stages import STAGES

STRATEGIES = runpy.run_path(str(DATA / "strategies.py"))
ANY_EVENT = STRATEGIES["any_event"]()
UNKNOWN = st.builds(Unknown, kind=st.just("surprise"), raw=st.just(b"{}"), t=st.floats(0, 100))


def about_few_runs(event: Any) -> Any:
    """Return the event with one of three run numbers, so that events meet."""
    if not hasattr(event, "run") or event.run is None:
        return event
    return type(event)(**{f: getattr(event, f) for f in event.__struct_fields__} | {"run": event.run % 3})


SEQUENCES = st.lists(ANY_EVENT.map(about_few_runs) | UNKNOWN, max_size=25)
PHASES = (events.PhaseName("pivot", "pivot"), events.PhaseName("panels", "panels"), events.PhaseName("rest", "rest"))


def everything(state: Model) -> None:
    """Read everything that a screen may read."""
    for run in state.runs.values():
        state.evidence(run)
        printed(state, run)
        report.result(state, run)
        for name in dir(Run):
            if not name.startswith("_"):
                getattr(run, name)
        for name in STAGES:
            run.stage_seconds(name)
    for name in ("run", "reading", "gpu"):
        getattr(state, name)


@settings(max_examples=100)
@given(SEQUENCES.filter(bool), st.integers(1, 7), st.data())
def test_no_order_of_events_breaks_the_model_and_seeking_is_exact(sequence: list[Any], every: int, data: st.DataObject) -> None:
    state = Model(seeking=True, limits=ModelLimits(checkpoint_every=every))
    apply_all(state, sequence)
    assert state == model_of(sequence)
    for _ in range(5):
        index = data.draw(st.integers(0, len(sequence)))
        before = state.index
        start = state.seek(index)
        assert start == state.index <= index
        assert index < start + every if index < before else before <= start
        apply_all(state, sequence[state.index : index])
        assert state == model_of(sequence[:index])
        everything(state)


def limited(model: Model) -> list[str]:
    """Return the backends with measured limits; for the GPU, if it is the watched one."""
    return [device.backend for device in (CPU, model.watched) if device in model.measured]


def test_events_of_several_gpus_stay_separate() -> None:
    state = Model()
    first, second = events.Device(t=0.0, name="first"), events.Device(t=0.0, gpu=1, name="second")
    for told in (
        *(first, second, events.Limits(t=0.0, backend="cpu"), events.Limits(t=0.0, backend="cuda", gpu=1)),
        *(events.Telemetry(t=i / 10, gpu=i % 2, gpu_power_watts=i % 2, gpu_clock_mhz=i % 2) for i in range(10)),
    ):
        state.apply(told)
    assert state.gpu == first and {r.gpu_power_watts for r in state.telemetry} == {0.0} and limited(state) == ["cpu"]
    state.apply(run_started())
    assert state.gpu == first, "the run is on no GPU"
    state.apply(run_started(run=2, backend="cuda", gpu=1))
    assert state.gpu == second and len(state.telemetry) == 5 and limited(state) == ["cpu", "cuda"]
    assert state.devices == {DeviceId("cuda", 0): first, DeviceId("cuda", 1): second}
    state.apply(run_started(run=3, backend="cuda"))
    assert [state.gpu_of(state.runs[run]) for run in (2, 3)] == [second, first], "each run's own, whichever was used last"
    for run in (2, 3):
        state.apply(events.Sample(t=1.0, run=run, seconds=1.0, since=0.0))
    found = [state.evidence(state.runs[run]) for run in (2, 3)]
    assert [(one.readings, one.gpu_clock_mhz) for one in found if one] == [(5, 1), (5, 0)], "telemetry of its own GPU"
    assert codec.encode(events.Telemetry(t=1.0, gpu=0)) == codec.seal(b'{"kind":"telemetry","t":1.0}'), "as it was with one"


def test_samples_of_several_gpus_describe_the_host_once() -> None:
    model = Model()
    model.apply(run_started(t=0, backend="cuda", gpu=1))
    model.apply(events.Sample(t=3.0, run=1, seconds=3.0, since=0.0))
    for tick in range(30):
        model.apply(events.Telemetry(t=tick / 10, gpu=0, gpu_clock_mhz=5.0, cpu_utilisation=0.25))
        if tick < 20:
            model.apply(events.Telemetry(t=tick / 10, gpu=1, gpu_clock_mhz=7.0))
        if tick == 25:
            assert model.followed == (DeviceId("cuda", 0), DeviceId("cuda", 1)), "a reading may be late"
    evidence = model.evidence(model.runs[1])
    assert evidence is not None and (evidence.gpu_clock_mhz, evidence.cpu) == (7.0, 0.25), "its own GPU, and the machine"
    assert len(model.of_host) == 30 and len(model.telemetry) == 20
    model.apply(events.Telemetry(t=3.5, gpu=0))
    assert model.followed == (DeviceId("cuda", 0),) and len(model.of_host) == 30


def test_a_frozen_model_does_not_change_with_the_live_one() -> None:
    limits = events.Limits(t=0.0, backend="cuda", forms=(events.FormLimit("float32", 1e13),), complete=True)
    told = [limits, begun(), reading(1.0), events.Notice(t=1, text="a"), events.Marker(t=1, text="b")]
    live = model_of(told)
    frozen = live.frozen()
    later = events.Notice(t=2, text="c"), events.Marker(t=2, text="d")
    apply_all(live, [DONE, reading(2.0), *later, replace(begun(), run=2)])
    assert frozen == model_of(told) != live


def begun(**experiment: Any) -> events.RunStarted:
    return run_started(Experiment(**experiment), phases=PHASES)


PLANNED = events.Planned(t=1, run=1, n=100, padded=104, steps=39, relaxations=104**3, device_bytes=10**7)
SAMPLES = [events.Sample(t=2.0 + i, run=1, seconds=s, since=2.0 + i - s) for i, s in enumerate((0.5, 0.25, 0.75))]
PASS = events.Phases(
    t=6,
    run=1,
    seconds=1.0,
    parts=tuple(
        events.Part(phase=p, seconds=s, launches=3, relaxations=r, device_bytes=7)
        for p, s, r in (("pivot", 0.25, 1), ("panels", 0.25, 2), ("rest", 0.5, 3))
    ),
)
DONE = events.RunDone(t=7, run=1, outcome="done", median=0.4, spread=0.1, count=3)


def verdict(word: str) -> events.Verdict:
    return events.Verdict(t=6.5, run=1, verdict=word, how="by looking")


def the_run(*sequence: events.Event, backend: str = "cpu") -> Run:
    run = model_of([run_started(Experiment(n=100), backend=backend, phases=PHASES), *sequence]).run
    assert run is not None
    return run


def test_rate_and_bandwidth_of_a_run_are_numbers_or_none() -> None:
    run = the_run(PLANNED, *SAMPLES)
    assert run.seconds == 0.5  # the median so far
    run = the_run(PLANNED, *SAMPLES, PASS, DONE)
    assert run.seconds == 0.4
    assert run.rate == pytest.approx(100**3 / 0.4)
    assert run.bandwidth == pytest.approx(10**7 / 0.4)
    assert [(p.key, p.share, p.relaxations) for p in run.phases] == [("pivot", 0.25, 1), ("panels", 0.25, 2), ("rest", 0.5, 3)]
    assert run.state == "done" and run.finished == 7
    run = the_run()
    assert (run.seconds, run.rate, run.bandwidth, run.verified, run.clean_window, run.main_occupancy) == (None,) * 6
    assert run.phases == () and not run.wrong
    no_model = events.Planned(t=1, run=1, n=100, padded=100, steps=1, relaxations=10**6, device_bytes=0)
    assert the_run(no_model, *SAMPLES, DONE).bandwidth is None
    nothing_timed = events.RunDone(t=7, run=1, outcome="done", median=0.0)
    assert the_run(PLANNED, nothing_timed).rate is None


def test_a_simulated_run_has_no_times() -> None:
    stage = events.Stage(t=2, run=1, name="warm-up", seconds=3.0)
    run = the_run(PLANNED, stage, *SAMPLES, PASS, DONE, verdict("verified"), backend="simulator")
    assert (run.seconds, run.rate, run.bandwidth, run.stage_seconds("warm-up")) == (None,) * 4
    assert run.phases == () and run.verified is True
    assert the_run(stage).stage_seconds("warm-up") == 3.0
    state = model_of([begun(), PLANNED])
    row = printed(state, run)
    assert "not timed" in row and "simulated: correct, not timed" in row
    assert not any("relax/s" in cell or " ms" in cell or "B/s" in cell for cell in row)
    data = report.result(state, run)
    assert all(data[name] is None for name in ("seconds", "relaxations_per_second", "model_bytes_per_second"))
    assert data["phases"] == data["stages"] == {}


@pytest.mark.parametrize(
    ("word", "verified", "wrong"),
    [
        ("verified", True, False),
        ("wrong", False, True),
        ("out of range", False, True),
        ("unverified", None, False),
        ("negative cycle", None, False),
    ],
)
def test_verified_is_known_or_not(word: str, verified: bool | None, wrong: bool) -> None:
    run = the_run(verdict(word))
    assert run.verified is verified and run.wrong is wrong


def test_stages_progress_and_times_never_run_backwards() -> None:
    run = the_run(events.Stage(t=2, run=1, name="load"), events.Progress(t=2, run=1, stage="load", done=0.5))
    assert run.stage == "load" and run.progress is not None and run.stages == ()
    run = run.after(events.Stage(t=3, run=1, name="load", seconds=1.0, bytes=5))
    assert run.stage_seconds("load") == 1.0 and run.stage_seconds("graph") is None
    run = run.after(events.Stage(t=3, run=1, name="clean"))
    assert run.stage == "clean" and run.progress is None
    assert run.after(DONE).stage == ""
    state = model_of([begun()])
    before = dict(state.runs)
    state.apply(events.Sample(t=3, run=2, seconds=1, since=2))
    assert state.runs == before and state.index == 2
    state = model_of([events.Notice(t=5, text="a"), events.Notice(t=3, text="b")])
    assert state.t == 5 and [n.text for n in state.log] == ["a", "b"]


def test_a_fault_ends_the_run_that_it_names() -> None:
    fault = events.Fault(t=5, source="worker", code="died", message="gone", run=1)
    state = model_of([begun(), PLANNED, fault])
    assert state.fault == fault
    assert state.runs[1].state == "failed" and state.runs[1].finished == 5
    assert [(n.text, n.level) for n in state.log] == [("gone", "error")]
    state.apply(run_started(t=6, run=2))
    assert state.fault is None and [run.state for run in state.runs.values()] == ["failed", "running"]
    state.apply(events.Fault(t=8, source="sampler", code="died", message="no telemetry"))
    assert state.runs[2].state == "running" and state.fault is not None
    done = model_of([begun(), DONE, fault])
    assert done.runs[1].state == "done", "a run that has ended is not undone"


def reading(t: float, **values: Any) -> events.Telemetry:
    return events.Telemetry(t=t, **values)


def test_results_for_a_state_are_cached_until_the_next() -> None:
    state, asked = model_of([replace(begun(), run=number) for number in range(20)]), list[str]()

    def everything(state: Model) -> str:
        asked.append("all")
        return "all"

    def one(state: Model, run: Run) -> str:
        asked.append("one")
        return f"{run.id} of {state.once(everything)}"

    for _ in range(2):
        assert [state.once(one, run) for run in state.runs.values()] == [f"{number} of all" for number in range(20)]
    assert state.once(one, replace(state.runs[3], id=77)) == "77 of all", "another version of a run, which is soon gone"
    assert state.once(one, replace(state.runs[3], id=88)) == "88 of all"
    assert (asked.count("all"), asked.count("one")) == (1, 22)
    state.apply(events.Notice(t=9, text="another state"))
    assert state.once(everything) == "all" and asked.count("all") == 2


def test_evidence_is_of_the_timed_repetitions_only() -> None:
    window = [events.Sample(t=3.0, run=1, seconds=1.0, since=2.0), events.Sample(t=5.0, run=1, seconds=1.0, since=4.0)]
    state = model_of(
        [
            replace(begun(), backend="cuda"),
            reading(1.99, gpu_power_watts=9000, throttle=0x20),
            reading(2.0, gpu_power_watts=100, gpu_clock_mhz=1000, throttle=0x4 | 0x1, other_cpu_utilisation=0.5),
            reading(2.1, sm_occupancy=0.01, dram_utilisation=0.01),  # an average that began before the passes
            window[0],
            reading(4.0, gpu_power_watts=300, throttle=0x400, other_cpu_utilisation=0.7),
            reading(5.0, gpu_power_watts=None, sm_occupancy=0.5),
            window[1],
            reading(5.01, gpu_power_watts=9000, throttle=0x20),
        ]
    )
    assert state.run is not None
    evidence = state.evidence(state.run)
    assert evidence is not None
    assert (evidence.readings, evidence.power_watts, evidence.gpu_clock_mhz) == (4, 300, 1000)
    assert (evidence.sm_occupancy, evidence.dram_utilisation, evidence.other_cpu) == (0.5, None, 0.6)
    assert evidence.throttle == 0x4 | 0x1 | 0x400
    state.apply(DONE)
    assert "throttled: power cap, reliability" in outcome(state, state.runs[1])


def test_evidence_reaches_to_the_end_of_the_timed_stage_and_missing_values_are_none() -> None:
    """Only the first of very many repetitions are events, and clocks may fall later."""
    stage = events.Stage(t=5.0, run=1, name="clean", seconds=3.0)
    state = model_of([begun(), events.Sample(t=2.1, run=1, seconds=0.1, since=2.0), reading(4.5, throttle=0x4)])
    assert state.run is not None
    before = state.evidence(state.run)
    assert before is not None and before.throttle == 0
    state.apply(stage)
    after = state.evidence(state.runs[1])
    assert after is not None and after.throttle == 0x4
    state = model_of([begun(), SAMPLES[0], reading(50, gpu_power_watts=5, throttle=0x4)])
    assert state.run is not None
    evidence = state.evidence(state.run)
    assert evidence is not None and (evidence.readings, evidence.power_watts, evidence.throttle) == (0, None, 0)
    assert evidence.other_cpu is None
    assert model_of([begun()]).evidence(model_of([begun()]).runs[1]) is None


def test_events_of_a_forged_file_are_bounded() -> None:
    state = model_of([begun(), *[events.Sample(t=2, run=1, seconds=1, since=1)] * 1000])
    assert len(state.runs[1].samples) == MAX_GATHERED
    counters = [events.Counters(t=1, run=1, op=f"op {place}", values={}) for place in range(MAX_GATHERED + 9)]
    assert len(model_of([begun(), *counters]).runs[1].counted) == MAX_OPS
    parts = tuple(events.Part(phase=f"p{n}", seconds=1, launches=1, relaxations=1, device_bytes=1) for n in range(600))
    names = tuple(events.PhaseName(part.phase, "x") for part in parts)
    run = the_run(replace(begun(), phases=names), events.Phases(t=1, run=1, seconds=600, parts=parts))
    assert len(run.phases) == len(run.phase_names) == MAX_PHASES


def test_device_facts_of_all_sources_are_merged() -> None:
    nvml = events.Device(t=0, name="GPU", driver="580", memory_bytes=1, power_limit_watts=700)
    cuda = events.Device(t=1, name="GPU", memory_bytes=2, compute_capability=(9, 0), cuda="13.0")
    both = merged(nvml, cuda)
    assert (both.name, both.driver, both.memory_bytes, both.power_limit_watts, both.cuda) == ("GPU", "580", 2, 700, "13.0")
    another = events.Device(t=1, name="GPU 2", memory_bytes=3)
    assert merged(both, another) == another, "facts of two GPUs are not mixed"
    padded = replace(cuda, name=f"{cuda.name}{' ' * 200}")
    assert merged(nvml, padded) == both, "a driver that fills the name up names the same GPU"
    absent = events.Device(t=2, present=False, note="no driver")
    assert merged(None, absent) == absent and merged(absent, cuda) == cuda and merged(cuda, absent) == cuda
    assert model_of([absent]).gpu is None and model_of([absent, cuda]).gpu == cuda
    of = {op: occupancy(t=2, op=op, registers=32, blocks=8, warps=64) for op in ("rest", "pivot", "panels")}
    assert the_run(*of.values()).main_occupancy == of["panels"], "without phases: the last one told"
    assert the_run(*of.values(), PASS).main_occupancy == of["rest"]


def ten_passes(number: int, begin: float) -> Iterator[events.Event]:
    """Yield a run of ten repetitions in a second, with ten telemetry samples."""
    yield run_started(run=number, t=begin)
    yield events.Stage(t=begin, run=number, name="clean")
    for tick in range(10):
        t = begin + tick / 10
        yield events.Sample(t=t + 0.1, run=number, seconds=0.01 * (tick + number), since=t)
        yield events.Round(t=t, run=number, index=tick, first=tick, seconds=(0.1,))
        yield events.Telemetry(t=t + 0.05, cpu_utilisation=tick / 10, other_cpu_utilisation=0.01 * tick)
    yield events.Stage(t=begin + 1, run=number, name="clean", seconds=1.0 + number / 1e3)
    yield events.Verdict(t=begin + 1.1, run=number, verdict="verified", how="it is")
    yield events.RunDone(t=begin + 1.2, run=number, outcome="done", median=0.05, count=10, indicative=True)


def both(runs: int, **limits: int) -> tuple[Model, Model]:
    """Return a live model and its replay."""
    live, replayed = Model(live=True, limits=ModelLimits(**limits)), Model()
    for number in range(1, runs + 1):
        for model in (live, replayed):
            apply_all(model, ten_passes(number, 2.0 * number))
    return live, replayed


def test_old_runs_are_small_and_keep_their_results() -> None:
    live, replayed = both(8, whole_runs=3)
    assert [number for number, run in live.runs.items() if not run.old] == [6, 7, 8]
    for number, run in live.runs.items():
        whole = replayed.runs[number]
        assert live.evidence(run) == replayed.evidence(whole) is not None
        for name in ("passes", "seconds", "indicative", "state", "end_to_end", "stage_times", "phases"):
            assert getattr(run, name) == getattr(whole, name), name
        assert not run.old or not (run.samples or run.rounds or run.plan or run.source)


def test_old_samples_are_thinned_and_runs_keep_their_evidence() -> None:
    live, replayed = both(30, readings=40)
    assert len(live.telemetry) <= 40 < len(replayed.telemetry)
    times = [reading.t for reading in live.telemetry]
    assert times == sorted(times) and times[0] == replayed.telemetry[0].t, "the whole session is still covered"
    assert live.telemetry[-20:] == replayed.telemetry[-20:]
    assert len(live.of_host) <= 40 < len(replayed.of_host), "also what they tell of the machine"
    for number, run in live.runs.items():
        assert live.evidence(run) == replayed.evidence(replayed.runs[number])
    live, _ = both(3, readings=40)
    assert live.run is not None
    known, reading = live.evidence(live.run), live.telemetry[-1]
    assert known is not None and known.readings
    for later in range(1, 400):
        live.apply(replace(reading, t=8.0 + later / 10))
    assert live.evidence(live.run) == known


def test_a_long_session_costs_few_saved_states_and_versions() -> None:
    notices = [events.Notice(t=float(number), text=str(number)) for number in range(1000)]
    state, live = Model(seeking=True, limits=ModelLimits(checkpoint_every=4, checkpoints=8)), Model(live=True)
    for each in (state, live):
        apply_all(each, notices)
    assert len(state.checkpoints) <= 8 and not live.checkpoints
    for index in (999, 500, 3, 0, 731):
        begin = state.seek(index)
        assert index - begin < 1000 / 4
        apply_all(state, notices[begin:index])
        assert [n.text for n in state.log] == [n.text for n in notices[:index]]
    begun = [
        event for number in range(100) for event in ten_passes(number, float(number)) if isinstance(event, events.RunStarted)
    ]
    late = [events.Progress(t=200.0, run=place * 37 % 100, stage="clean", done=place / 1e5) for place in range(8000)]
    state = Model(seeking=True, limits=ModelLimits(versions=1000, checkpoint_every=128))
    apply_all(state, [*begun, *late])
    assert len({id(run) for saved in state.checkpoints for run in saved.runs}) < 2000
    assert [run.progress for run in state.runs.values()] == sorted(late[-100:], key=lambda event: event.run)


def test_an_average_that_began_before_the_window_does_not_count() -> None:
    slow = [events.Telemetry(t=float(t), sm_occupancy=t / 10, gpu_clock_mhz=100.0 * t) for t in (1, 2, 3)]
    assert averaged_within(slow, "sm_occupancy", 1.5, 3.5) == [0.3], "at 1 Hz, the reading at 2 s begins at 1 s"
    assert averaged_within(slow, "gpu_clock_mhz", 1.5, 3.5) == [200.0, 300.0], "a clock is no average"
    quick = [events.Telemetry(t=t / 10, sm_occupancy=t / 100) for t in range(10)]
    assert averaged_within(quick, "sm_occupancy", 0.45, 0.85) == [0.07, 0.08]


def test_complete_peak_rates_stay_until_new_ones_are_complete() -> None:
    first = events.Limits(t=0.0, backend="cuda", forms=(events.FormLimit("float32", 1e13), events.FormLimit("int32", 2e13)))
    whole = replace(first, complete=True)
    state = model_of([first])
    assert state.measured == state.measuring == {first.device_id: first}
    apply_all(state, [whole, partial := replace(first, t=1.0, forms=first.forms[:1])])
    assert state.measured == {first.device_id: whole} and state.measuring == {first.device_id: partial}
    apply_all(state, [replace(whole, t=2.0)])
    assert state.measured[first.device_id].t == 2.0
