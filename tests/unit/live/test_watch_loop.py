"""The watch loop: its reports for each save and their order, with a scripted clock, compiler and test."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from builders import listed, run_started
from msgspec.structs import replace

from fwtui.commands.new import python
from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.experiment.experiment import Experiment, Settled, as_it_ran
from fwtui.live.samplers import OFF
from fwtui.live.watch_events import POLL_SECONDS, Activity, CheckEnd, CheckStart, FileWatcher, Report, Superseded, WatchUpdate
from fwtui.live.watch_loop import Benchmarks, TimedSave, WatchLoop, WatchRequest
from fwtui.stream import events
from fwtui.stream.kernel_tests import Begun, Compiled, Finding, OperationResources
from fwtui.stream.listing import CodeLine, Listing
from fwtui.stream.model import Model

USED = OperationResources(
    op="relax",
    threads=256,
    registers=40,
    shared_bytes=4096,
    spill_bytes=8,
    blocks=6,
    warps=48,
    max_warps=64,
    limiters=("registers",),
)
NOTHING = Compiled()
RIGHT = [
    Finding(case="plan", outcome="right", sentence="the plan is good"),
    Finding(case="n = 1", outcome="right", sentence="n = 1: right", n=1),
]


class Clock:
    """Time passes by sleeping; at given moments something happens."""

    def __init__(self, **at: Callable[[], object]):
        self.looks = 0
        self._at = {int(look.removeprefix("at_")): happens for look, happens in at.items()}

    def __call__(self, seconds: float) -> None:
        assert seconds == POLL_SECONDS
        self.looks += 1
        assert self.looks < 100, "nothing ever came"
        self._at.get(self.looks, lambda: None)()


class FakeTimes:
    def __init__(self, *told: Report):
        self._told = told
        self.last: list[int | None] = []
        self.parents: list[str] = []

    def reports(self, last: TimedSave | None, parent: str, stop: Event) -> Iterator[Report]:
        self.last.append(last.number if last is not None else None)
        self.parents.append(parent)
        yield from self._told

    def close(self) -> None: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text("# begun from the rung katz-kider\n")
    return tmp_path / "mine.py"


def save(path: Path, text: str) -> None:
    path.write_text(text)


class FakeAttempts:
    """A scripted compiler and test; each needs its standby process first."""

    def __init__(self, found: Compiled, tried: Callable[[], list[Finding]], later: Iterable[Finding]):
        self._found, self._tried, self._later = found, tried, later
        self.ready = False

    def prepare(self) -> None:
        self.ready = True

    def close(self) -> None:
        self.ready = False

    def compiled(self, stop: Event, listing: bool = False) -> Compiled:
        return (
            self._found if listing else replace(self._found, used=tuple(replace(one, listing=None) for one in self._found.used))
        )

    def findings(self, stop: Event, begun: Callable[[Begun], object]) -> Iterator[Finding]:
        assert self.ready
        self.ready = False
        for finding in self._tried():
            if stop.is_set():
                return
            yield finding

    def run_sanitizer(self, stop: Event) -> Iterator[Finding]:
        yield from self._later


def sitting(
    path: Path, times: FakeTimes, clock: Clock, found: Compiled, tried: Callable[[], list[Finding]], later: Iterable[Finding] = ()
) -> WatchLoop:
    asked = WatchRequest(path, "mine", DeviceId("simulator"), (9, 0), 512)
    return WatchLoop(asked, times, FileWatcher(path, clock), checks=FakeAttempts(found, tried, later))  # type: ignore[arg-type]


def judged(
    path: Path, times: FakeTimes, found: Compiled = NOTHING, tried: Iterable[Finding] = RIGHT, later: Iterable[Finding] = ()
) -> list[WatchUpdate]:
    """Return the reports for the current file."""
    return list(sitting(path, times, Clock(), found, lambda: list(tried), later).run(Event(), once=True))


def sentences(told: list[WatchUpdate]) -> list[str]:
    return [one.sentence for one in told if isinstance(one, Report)]


def test_reports_come_in_the_order_of_their_availability(path: Path) -> None:
    times = FakeTimes(Report("time", "n = 512: 1 ms", seconds=0.001), Report("reason", "It is bottleneck memory."))
    told = judged(path, times, Compiled((USED,)))
    assert sentences(told) == [
        "sm_90: relax: 40 registers, 4.00 KiB of shared memory, 8 bytes spilled, 48 of 64 warps (limiter: registers)",
        "n = 512 is skipped: the simulator takes at most 24 vertices and has no clock",
        "the plan is good",
        "n = 1: right",
        "right in 1 case, up to n = 1",
        "n = 512: 1 ms",
        "It is bottleneck memory.",
    ]
    assert told[0] == CheckStart(1) and times.parents == ["katz-kider"]
    end = told[-1]
    assert isinstance(end, CheckEnd) and end.right and end.tested
    assert end.seconds == 0.001


@pytest.mark.parametrize("wrong", ["", "mine.py:3: no such function"])
def test_findings_do_not_wait_for_a_slow_compiler_but_mistakes_do(path: Path, wrong: str) -> None:
    answers = Event()

    class SlowCompiler(FakeAttempts):
        def compiled(self, stop: Event, listing: bool = False) -> Compiled:
            assert answers.wait(20)
            return super().compiled(stop, listing)

        def findings(self, stop: Event, begun: Callable[[Begun], object]) -> Iterator[Finding]:
            begun(Begun("n = 1", 1, 2))
            yield from super().findings(stop, begun)

    race = Finding(case="n = 3", outcome="racy", sentence="n = 3: it races", n=3)
    checks = SlowCompiler(Compiled(lacking="" if wrong else "none", wrong=wrong), lambda: [*RIGHT, race], ())
    asked = WatchRequest(path, "mine", DeviceId("simulator"), (9, 0))
    told: list[WatchUpdate] = []
    for update in WatchLoop(asked, FakeTimes(), FileWatcher(path, Clock()), checks=checks).run(Event(), once=True):  # type: ignore[arg-type]
        told.append(update)
        if update == Activity("compiling for sm_90"):
            assert Activity("case 1 of 2: n = 1") in told and sentences(told) == ["the plan is good", "n = 1: right"]
            answers.set()
    assert sentences(told)[2:] == ([wrong] * 2 if wrong else ["not compiled for sm_90: none", *[race.sentence] * 2])


def test_instruction_facts_of_the_main_phase_follow_the_verdict_unless_it_is_wrong(path: Path) -> None:
    code = Listing(mix={"LDS.128": 4, "FADD": 8, "FMNMX": 8}, relaxations=8, total=20)
    found = Compiled(tuple(replace(USED, op=op, phase=op, listing=code) for op in ("pivot", "rest")))
    told = judged(path, FakeTimes(), found)
    after = next(place for place, one in enumerate(told, 1) if isinstance(one, Report) and one.about == "verdict")
    assert sentences(told[after:]) == [
        "sm_90: rest: 2.50 instructions per relaxation of a thread, so a multiprocessor can issue at most 51.2 relaxations per "
        "cycle; 0.50 loads from shared memory per relaxation; 8 of 20 instructions are FADD, 8 FMNMX, 4 LDS.128 (derived from "
        "its instructions, not measured)"
    ]
    assert isinstance(told[-1], CheckEnd), "a prompt to save again follows all reports"
    told = judged(path, FakeTimes(), found, [Finding(case="n = 3", outcome="wrong", sentence="n = 3: wrong", n=3)])
    assert sentences(told)[-1] == "n = 3: wrong"


class SampledSession:
    """A session whose runs end at once and whose samples follow on request."""

    def __init__(self) -> None:
        self.model, self.samples, self.record_source = Model(), OFF, False
        self.sampled: list[str] = []
        self._coming: list[events.Event] = []

    @property
    def busy(self) -> bool:
        return bool(self._coming)

    def drain(self) -> int:
        coming, self._coming = self._coming, []
        for event in coming:
            self.model.apply(event)
        return len(coming)

    def settled(self, experiment: Experiment) -> Settled:
        return as_it_ran(experiment, FIRST_GPU)

    def start(self, experiment: Settled) -> int:
        run = len(self.model.runs) + 1
        begun = run_started(experiment, run, backend="cuda")
        self.model.apply(begun)
        self.model.apply(events.RunDone(t=1.0, run=run, outcome="done", median=0.004 / run, count=9))
        if self.samples != "off":
            self.sampled.append(experiment.kernel)
            at: dict[str, Any] = {"t": 2.0, "run": run}
            lines = (CodeLine("rung.py", 3, "c", {"wait": 7}), CodeLine("mine.py", 9, "d = via", {"barrier": 2, "wait": 1}))
            self._coming = [
                *listed(
                    Listing(lines=lines),
                    events.WarpSamples(**at, op="relax", reasons={"wait": 8, "barrier": 2}, hot=lines[0]),
                ),
                events.Sampled(**at),
            ]
        return run

    def cancel(self) -> None: ...
    def mark(self, text: str) -> None: ...
    def close(self, reason: str = "closed") -> None: ...


def test_the_hotspot_of_the_users_file_follows_its_time(path: Path) -> None:
    path.write_text(python(None, "mine"))
    session = SampledSession()
    asked = WatchRequest(path, "mine", FIRST_GPU, (9, 0), 64)
    times = Benchmarks(asked, lambda: session, samples="auto")  # type: ignore[arg-type,return-value]
    told = [(said.about, said.sentence) for said in times.reports(None, "naive", Event())]
    assert [about for about, _ in told] == ["time", "line", "time", "time"]
    assert told[2][1] == "2.00x slower than naive, the rung it was copied from (2.00 ms)"
    assert told[1][1] == "mine.py:9 30 % of PC samples, barrier (waits for its block): d = via"
    assert session.sampled == ["mine"] and session.record_source


@pytest.mark.parametrize(
    ("found", "tried", "said", "was_tried"),
    [
        (Compiled(wrong="mine.py:3:7: SyntaxError: no"), RIGHT, ["mine.py:3:7: SyntaxError: no"] * 2, True),
        (Compiled(lacking="no compiler"), [Finding(case="n = 1", outcome="hung", sentence="n = 1: no end", n=1)],
         ["not compiled for sm_90: no compiler", "n = 512 is skipped: the simulator takes at most 24 vertices and has no clock",
          "n = 1: no end", "n = 1: no end"], True),
        (Compiled(), [Finding(case="all graphs", outcome="left out", sentence="it takes a GPU")], ["it takes a GPU"] * 2, False),
    ],
)  # fmt: skip
def test_wrong_kernels_are_untimed(path: Path, found: Compiled, tried: list[Finding], said: list[str], was_tried: bool) -> None:
    times = FakeTimes()
    told = judged(path, times, found, tried)
    assert sentences(told) == said and times.last == []
    end = told[-1]
    assert isinstance(end, CheckEnd) and not end.right and end.tested == was_tried
    assert end.seconds is None


def test_a_result_that_is_wrong_only_at_size_changes_the_verdict(path: Path) -> None:
    wrong = Finding(case="n = 512", outcome="wrong", sentence="n = 512: wrong", n=512)
    told = judged(path, FakeTimes(Report("case", "n = 512: wrong", wrong)))
    assert sentences(told)[-3:] == ["right in 1 case, up to n = 1", "n = 512: wrong", "n = 512: wrong"]
    assert isinstance(told[-1], CheckEnd) and not told[-1].right


def test_a_slow_tool_may_change_the_verdict_and_a_harmless_race_leaves_it(path: Path) -> None:
    race = Finding(case="memcheck", outcome="broken", sentence="it writes beside")
    times = FakeTimes(Report("time", "timed", seconds=0.5))
    loop = sitting(path, times, Clock(), Compiled(), lambda: RIGHT, [race])
    told = list(loop.run(Event(), once=True))
    assert sentences(told)[-4:] == ["right in 1 case, up to n = 1", "timed", "it writes beside", "it writes beside"]
    first, last = (one for one in told if isinstance(one, CheckEnd))
    assert first.right and told.index(first) == told.index(last) - 3 and not last.right
    assert (first.seconds, last.verdict, last.seconds) == (0.5, "it writes beside", None)
    race = Finding(case="racecheck", outcome="unreliable", sentence="threads race")
    loop = sitting(path, FakeTimes(Report("time", "timed", seconds=0.5)), Clock(), Compiled(), lambda: RIGHT, [race])
    told = list(loop.run(Event(), once=True))
    assert ("threads race", None) in [(said.sentence, said.right) for said in told if isinstance(said, Report)]
    assert all(one.right for one in told if isinstance(one, CheckEnd))


@pytest.mark.parametrize(("outcome", "looks"), [("broken", True), ("hung", False)])
def test_a_kernel_that_hung_is_not_given_to_a_slow_tool(path: Path, outcome: str, looks: bool) -> None:
    tried = [RIGHT[0], Finding(case="n = 31", outcome=outcome, sentence="n = 31: it did not work")]
    outside = Finding(case="memcheck", outcome="broken", sentence="it writes outside its memory")
    told = judged(path, FakeTimes(), tried=tried, later=[outside])
    assert (outside.sentence in sentences(told)) == looks
    assert len([one for one in told if isinstance(one, CheckEnd)]) == 1


def test_a_save_during_a_test_restarts_it_and_keeps_the_last_timed_result(path: Path) -> None:
    ended = Event()
    saves = iter(["second\n", None, None])

    def tried() -> list[Finding]:
        text = next(saves)
        if text is not None:
            save(path, text)
        return RIGHT

    clock = Clock(at_4=lambda: save(path, "the third\n"), at_8=ended.set)
    times = FakeTimes(Report("time", "timed", seconds=0.5))
    told = list(sitting(path, times, clock, Compiled(), tried).run(ended))
    kinds = [type(one) for one in told if not isinstance(one, Report | Activity)]
    assert kinds == [CheckStart, Superseded, CheckStart, CheckEnd, CheckStart, CheckEnd]
    assert times.last == [None, 2]


def test_a_file_is_read_when_it_is_stable_and_an_end_stops_the_wait(path: Path) -> None:
    path.unlink()
    clock = Clock(at_3=lambda: save(path, "a"), at_4=lambda: save(path, "ab"), at_5=lambda: save(path, "abc"))
    watched = FileWatcher(path, clock)
    assert watched.wait(Event()) and clock.looks == 6, "it was still being written at looks 4 and 5"
    assert not watched.changed
    path.unlink()
    assert not watched.changed, "editors that save by renaming take it away for a moment"
    save(path, "abc")
    os.utime(path, (1, 1))
    assert watched.changed
    watched.wait(Event())
    state = path.stat()
    for change in (lambda: save(path, "abd"), lambda: save(path.with_name("new"), "abe") or path.with_name("new").replace(path)):
        change()
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert watched.changed, "its size and its time are as before"
        watched.wait(Event())
    for become in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        path.unlink()
        become(path)
        assert watched.changed, "it is judged, and refused in a sentence"
        watched.wait(Event())
    path.unlink()
    save(path, "abc")
    watched.wait(Event())
    watched = FileWatcher(path := path.rename(path.with_suffix(".cu.py")), clock)
    watched.wait(Event())
    save(path.with_suffix(""), "// kernels")
    assert watched.changed, "the source beside it is part of the kernel"
    ended = Event()
    watched = FileWatcher(path, Clock(at_5=ended.set))
    assert watched.wait(ended) and not watched.wait(ended)
