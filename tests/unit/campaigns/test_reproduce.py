"""Presets of documents: which runs count and how they are found, and the command that runs and judges them."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from claim_sessions import by_tile
from made_sessions import CLAIMS, Made, MadeLive, int16, int32
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.campaigns.reproduce import break_even, presets, results
from fwtui.campaigns.reproduce.campaign import Performer
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNTESTABLE, near
from fwtui.campaigns.reproduce.documents import henriod, lund_smith
from fwtui.campaigns.reproduce.documents.cs542200 import write_graph
from fwtui.campaigns.reproduce.preset import LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import Missing, Results, Time, ask
from fwtui.common.child_process import ChildProcess
from fwtui.common.exit_codes import OK, USAGE
from fwtui.experiment.experiment import Experiment, changed
from fwtui.graphs.loading import read
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry
from fwtui_kernels.plan import Cost, Rect, Step


def test_the_second_half_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = CLAIMS["HE4"].answer(Made().results)
    assert (answer.verdict, answer.value) == (HOLDS, "A11* -> A12 -> A21 -> A22 -> A22*")

    def apart(shape: Any, stepwise: bool) -> Iterator[Step]:
        half = shape.padded // 2
        for low in (0, half):
            own = (Rect(low, low, low + half, low + half),)
            yield Step("base", "base", (low,), Cost(half**3, 0), own, own)

    fake = {"kleene": replace(registry()["kleene"], plan=apart)}
    monkeypatch.setattr(results, "registry", lambda: fake)
    assert CLAIMS["HE4"].answer(Made().results).verdict == REFUTED


def test_two_gpus_are_compared_between_two_sessions() -> None:
    def session(name: str, cc: tuple[int, int], multiprocessors: int, small: float, large: float) -> Model:
        device = events.Device(t=0.0, name=name, compute_capability=cc, multiprocessors=multiprocessors)
        made = Made(device).add(int32("naive", 64), small).add(int32("naive", 2048), large)
        made.add(int32("naive", 2048, threads=64), 1e-9).add(ask("naive", 2048), 1e-9)
        return made.model

    new = session("2070 SUPER", (7, 5), 40, 1.0, 1.0)
    for old, verdict in (
        (session("Titan X", (6, 1), 28, 0.8, 1.5), HOLDS),
        (session("Titan X", (6, 1), 28, 1.5, 0.8), REFUTED),
        (session("Titan X", (6, 1), 28, 2.0, 1.5), REFUTED),
        (session("older and smaller", (6, 1), 10, 0.8, 1.5), UNTESTABLE),
        (session("as old", (7, 5), 80, 0.8, 1.5), UNTESTABLE),
        (new, UNTESTABLE),
    ):
        for first, second in ((new, old), (old, new)):
            assert CLAIMS["SF11"].answer(Results(first, [second])).verdict == verdict, old.gpu


def test_arithmetic_of_the_documents() -> None:
    assert lund_smith.conflict(cyclic=False, banks=16, broadcasts=False) == 4
    assert lund_smith.conflict(cyclic=True, banks=16, broadcasts=False) == 1
    assert lund_smith.conflict(cyclic=False, banks=32, broadcasts=True) == 1
    # without a GPU the pattern itself is the answer
    assert CLAIMS["LS11"].answer(Made(gpu=None).results).verdict == HOLDS
    assert (henriod.ORIGINAL, henriod.HIS) == (460_800, 14_016)
    assert henriod.CORRECTED == 9_216 + 76_800
    assert near(1.0, 1.5) and near(1.5, 1.0) and not near(1.51, 1.0)
    assert near(1.34, 2.0, 3.0) and near(4.5, 2.0, 3.0) and not near(4.6, 2.0, 3.0)


def test_counters_decide_where_they_were_measured() -> None:
    rows = {pitch: int16("naive", 4099, pitch=pitch) for pitch in (0, 1)}
    made = Made().add(rows[0], 1.0, counters={"global_load_sectors": 150.0}, op="relax")
    made.add(rows[1], 1.0, counters={"global_load_sectors": 100.0}, op="relax")
    assert CLAIMS["CA9"].answer(made.results).verdict == HOLDS
    tiles = by_tile(9, 5, 0.44, 0.37, 0.28)
    answer = CLAIMS["CS2"].answer(tiles.results)
    assert "GOPS" not in answer.value and "GOPS" in answer.note and answer.verdict == HOLDS
    for gops, verdict in (((16.0, 32.0, 64.0), HOLDS), ((16.0, 32.0, 32.0), REFUTED)):
        for run, counted in zip((3, 4, 5), gops, strict=True):
            tiles.model.apply(events.Counters(t=3.0, run=run, op="rest", values={"gops": counted}))
        answer = CLAIMS["CS2"].answer(tiles.results)
        assert answer.verdict == verdict and f"8: 16.0 GOPS, 16: 32.0 GOPS, 32: {gops[2]} GOPS" in answer.value


def test_counters_are_of_the_same_size_and_of_known_names() -> None:
    made = Made().add(
        int16("naive", 4099), 1.0, device_bytes=int(5e12), counters={"l1_hit_rate": 0.5, "l2_hit_rate": 0.5}, op="relax"
    )
    made.add(int16("naive", 8192), 1.0, device_bytes=int(5e12))
    assert "hits" not in CLAIMS["CA3"].answer(made.results).value
    key = "integer_instructions_per_relaxation"
    made = Made().add(int32("blocked-branch", 2048), 1.2, counters={key: 9.0}).add(int32("katz-kider", 2048), counters={key: 7.0})
    made.add(int32("katz-kider", 4096), counters={key: 5.0})
    assert "9 integer instructions a relaxation, 7 with min (n 2048)" in CLAIMS["CS5"].answer(made.results).value
    with pytest.raises(KeyError):
        made.results.counter(int32("katz-kider", 2048), "rest", "shared_load_bank_conflicts")


def test_only_right_and_finished_runs_count_and_a_crash_is_named() -> None:
    slow, fast = int32("blocked-branch", 1024), int32("katz-kider", 1024)
    cases: tuple[Any, ...] = ({"verdict": "wrong"}, {"verdict": "unverified"}, {"outcome": "failed", "message": "the GPU burnt"})
    for bad in cases:
        answer = CLAIMS["CS5"].answer(Made().add(slow, 2.0).add(fast, 1.0, **bad).results)
        assert answer.verdict == UNTESTABLE and "katz-kider" in answer.reason
    for first, second in (("wrong", "verified"), ("verified", "wrong")):
        once = Made().add(slow, 2.0).add(fast, 1.0, verdict=first).add(fast, 1.0, verdict=second)
        answer = CLAIMS["CS5"].answer(once.results)
        assert answer.verdict == UNTESTABLE and "is wrong: so it is" in answer.reason
    unverified = Made().add(slow, 2.0).add(fast, 1.0, verdict="unverified").add(fast, 1.0)
    assert CLAIMS["CS5"].answer(unverified.results).verdict == HOLDS
    made = Made().add(int32("blocked-branch", 1024))
    made.model.apply(
        events.RunStarted(t=1.0, run=9, experiment=int32("katz-kider", 1024, tile=32), title="", backend="cuda", phases=())
    )
    made.model.apply(events.Fault(t=2.0, run=9, source="worker", code="died", message="the worker died (signal 9)"))
    assert "katz-kider at n = 1024 crashed: the worker died (signal 9)" in CLAIMS["CS5"].answer(made.results).reason


def test_a_run_is_found_by_everything_that_was_asked_and_extrapolated_times_say_so() -> None:
    results = Made().add(ask("katz-kider", 64, tile=8, threads=64)).add(ask("katz-kider", 64), 2.0).results
    assert results.seconds(ask("katz-kider", 64, tile=8, threads=64)) == 1.0
    assert results.seconds(ask("katz-kider", 64, threads=256, tile=32)) == 2.0
    assert results.seconds(ask("katz-kider", 64, repeats=3, budget=9.0, verify="sample", launch="graph", device="0")) == 2.0
    others: list[dict[str, Any]] = [
        *({"n": 65}, {"tile": 16}, {"dtype": "int32"}, {"density": 0.5}, {"memory": "pinned"}, {"file": "a.gr"}, {"no_such": 1}),
        *({"seed": 8}, {"high": 100}, {"connected": True}, {"negative": 0.1}, {"launch": "eager"}),
        *({"device": "1"}, {"device": "simulator"}),
    ]
    for other in others:
        with pytest.raises(Missing):
            results.find(ask("katz-kider", **{"n": 64, **other}))
    results = Made().add(ask("serial", 1024), 1.0).add(ask("serial", 512), 5.0).results
    make = partial(ask, "serial")
    assert results.time(make, 4096) == Time(64.0, 1024, 4096)
    assert "*extrapolated* from n = 1024" in results.time(make, 4096).words
    assert "extrapolated" not in results.time(make, 1024).words
    with pytest.raises(Missing):
        results.time(make, 100)


def test_bisection_ends_where_the_gpu_begins_to_win() -> None:
    made, cpu, gpu = Made(), partial(int32, "serial"), partial(int32, "naive")
    for wanted in break_even.search(made.results, cpu, gpu, steps=6):
        wins = wanted.kernel == "naive" and wanted.n >= 100
        made.add(wanted, 0.5 if wins else 1.0 if wanted.kernel == "serial" else 2.0)
    answer = break_even.break_even(made.results, cpu, gpu, 100)
    low, high = (int(word) for word in answer.value.split() if word.isdecimal())
    assert low < 100 <= high and high - low <= 8


def test_shared_memory_is_known_from_compiling_where_nothing_ran() -> None:
    results = Made(gpu=None).results
    results.compiled = lambda kernel: {"rest": 1024}
    assert CLAIMS["LS10"].answer(results).verdict == HOLDS
    results.compiled = lambda kernel: "no compiler"
    assert CLAIMS["LS10"].answer(results).reason == "no compiler"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, pretend: Pretend, tmp_path: Path) -> None:
    """A machine without a GPU, and graphs of a few vertices."""
    pretend.driver(False)
    small = presets()["sing"]

    def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
        return (changed(wanted, n=12) for wanted in small.runs(results, scale) if isinstance(wanted, Experiment))

    monkeypatch.setattr("fwtui.commands.reproduce.presets", lambda: {"sing": replace(small, runs=runs)})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_whole_preset_without_a_gpu_and_again_from_its_recording(
    no_gpu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sing.fwt.jsonl"
    assert main(["reproduce", "sing", "--quick", "--telemetry-hz", "0", "--record", str(path), "--json"]) == OK
    live = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in live] == [claim.id for claim in presets()["sing"].claims]
    answers = {row["id"]: row["answer"] for row in live}
    # passes of a microsecond may differ too much to tell
    assert answers["SF6"] in (HOLDS, REFUTED) or "too noisy" in next(row["reason"] for row in live if row["id"] == "SF6")
    assert answers["SF9"] in (HOLDS, REFUTED)
    assert answers["SF4"] == UNTESTABLE
    assert path.stat().st_size < 80_000
    assert main(["reproduce", "sing", "--from", str(path), "--json"]) == OK
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == live
    assert main(["reproduce", "sing", "--from", str(path)]) == OK
    shown = capsys.readouterr().out
    assert "SF4 not testable here: naive: needs a GPU" in shown and "Left out: naive: needs a GPU" in shown and "Rule:" in shown


def test_a_record_goes_with_no_recording_and_all_records_take_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for words, said in ((["sing", "--from", "x"], "do not go together"), (["all"], "folder")):
        assert main(["reproduce", *words, "--record", str(tmp_path / "file")]) == USAGE
        assert said in capsys.readouterr().err


def drained(steps: Iterator[str | None]) -> list[str | None]:
    told = []
    for step in steps:
        told.append(step)
        time.sleep(0.02)
    return told


def child(program: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", program], stdin=subprocess.PIPE)


def test_the_file_is_there_when_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    told = drained(write_graph(int32("serial", 9), path))
    assert told[0] is None and set(told[:-1]) == {None} and told[-1] == ""
    assert read(str(path), "int32").n == 9


def test_a_failure_says_why_and_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    told = drained(write_graph(int32("serial", 9), tmp_path / "no such folder" / "g.gr"))
    assert told[-1] is not None and told[-1].startswith("its graph was not written: g.gr cannot be written")
    ending = write_graph(int32("serial", 9), tmp_path / "g.gr", partial(child, "import sys; sys.exit(3)"))
    assert drained(ending)[-1] == "its graph was not written: exit code 3"
    begin = time.monotonic()
    told = drained(write_graph(int32("serial", 9), tmp_path / "g.gr", partial(child, "import time; time.sleep(600)"), most=0.05))
    assert told[-1] == "its graph was not written within 0 s" and time.monotonic() - begin < 300


def test_a_preset_that_waits_blocks_nobody_and_names_what_it_left_out() -> None:
    def runs(results: Results, scale: RunScale) -> Iterator[Experiment | LeftOut | None]:
        yield None
        yield LeftOut("serial n 9", "its graph was not written: no")
        yield ask("serial", 9)

    live: Any = MadeLive()
    preset = Preset("test", "Test", (), runs, seconds=9.0)
    performer = Performer(live, preset, RunScale(False), 9.0, lambda text: None)
    assert performer.advance() and live.started == []
    assert performer.advance() and [wanted.kernel for wanted in live.started] == ["serial"]
    assert not performer.advance()
    assert performer.results.left_out == ["serial n 9: its graph was not written: no"]
    live = MadeLive()
    Performer(live, preset, RunScale(False), 9.0, lambda text: None).perform()
    assert [wanted.kernel for wanted in live.started] == ["serial"]
