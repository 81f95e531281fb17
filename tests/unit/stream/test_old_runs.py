"""A live session of many runs: old ones keep what tables and charts need, and old readings are thinned out."""

from collections.abc import Iterator

from msgspec.structs import replace

from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.model import Model, ModelLimits


def told(number: int, begin: float) -> Iterator[events.Event]:
    """A run of ten passes in a second, with ten readings."""
    yield events.RunStarted(t=begin, run=number, experiment=Experiment(), title="T", backend="cpu", phases=())
    yield events.Stage(t=begin, run=number, name="clean")
    for tick in range(10):
        t = begin + tick / 10
        yield events.Sample(t=t + 0.1, run=number, seconds=0.01 * (tick + number), since=t)
        yield events.Round(t=t, run=number, index=tick, first=tick, seconds=(0.1,))
        yield events.Telemetry(t=t + 0.05, cpu_utilisation=tick / 10, other_cpu_utilisation=0.01 * tick)
    yield events.Stage(t=begin + 1, run=number, name="clean", seconds=1.0 + number / 1e3)
    yield events.Verdict(t=begin + 1.1, run=number, verdict="verified", how="it is")
    answers = events.Answers(t=begin + 1.2, run=number, counts=(1, 2), heat=((1.0, 2.0), (3.0, 4.0)))
    yield from (answers, events.RunDone(t=begin + 1.2, run=number, outcome="done", median=0.05, count=10, indicative=True))


def both(runs: int, **limits: int) -> tuple[Model, Model]:
    """A live session, and the same one replayed."""
    live, replayed = Model(live=True, limits=ModelLimits(**limits)), Model()
    for number in range(1, runs + 1):
        for event in told(number, 2.0 * number):
            live.apply(event)
            replayed.apply(event)
    return live, replayed


def test_old_runs_are_small_and_say_the_same() -> None:
    live, replayed = both(8, whole_runs=3)
    assert [number for number, run in live.runs.items() if run.pass_times is None] == [6, 7, 8]
    for number, run in live.runs.items():
        whole = replayed.runs[number]
        assert live.evidence(run) == replayed.evidence(whole) is not None
        for name in ("passes", "seconds", "clean_window", "indicative", "state", "end_to_end", "stage_times", "phases"):
            assert getattr(run, name) == getattr(whole, name), name
        assert run.pass_times is None or not (run.samples or run.rounds or run.plan or run.source or run.heat)
        assert replace(run.whole(told(number, 2.0 * number)), evidence=None) == whole


def test_what_is_told_of_an_old_run_later_is_kept_and_without_its_events_it_stays() -> None:
    live = both(1)[0]
    now = events.Progress(t=9.0, run=1, stage="answers", done=0.5)
    whole = live.runs[1].brief(None).after(now).whole(told(1, 2.0))
    assert whole.progress == now and whole.samples and whole.pass_times is None
    live = both(1)[0]
    late = [events.Answers(t=9.0, run=1, counts=(3,), heat=((5.0,),)), events.Counters(t=9.0, run=1, op="x", values={})]
    live.apply_all(late)
    before = live.runs[1]
    assert before.brief(None).whole([*told(1, 2.0), *late]) == before
    live, _ = both(3, whole_runs=1)
    old = live.runs[1]
    assert old.pass_times is not None
    assert old.whole(()) is old
    assert old.whole(told(2, 4.0)) is old
    assert old.whole([*told(1, 2.0)][:-8]) is old, "half of them are lost"


def test_old_readings_are_thinned_and_runs_know_what_they_said_however_long_it_idles() -> None:
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
        each.apply_all(notices)
    assert len(state.checkpoints) <= 8 and not live.checkpoints
    for index in (999, 500, 3, 0, 731):
        begin = state.seek(index)
        assert index - begin < 1000 / 4
        for event in notices[begin:index]:
            state.apply(event)
        assert [n.text for n in state.log] == [n.text for n in notices[:index]]
    begun = [event for number in range(100) for event in told(number, float(number)) if isinstance(event, events.RunStarted)]
    late = [events.Progress(t=200.0, run=place * 37 % 100, stage="clean", done=place / 1e5) for place in range(8000)]
    state = Model(seeking=True, limits=ModelLimits(versions=1000, checkpoint_every=128))
    state.apply_all([*begun, *late])
    assert len({id(run) for saved in state.checkpoints for run in saved.runs}) < 2000
    assert [run.progress for run in state.runs.values()] == sorted(late[-100:], key=lambda event: event.run)
