"""Kernels and packages side by side: everybody in turns, who is left out and why, and what is said of the result."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import fwtui
from msgspec.structs import replace
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.analysis import limits
from fwtui.campaigns.bench import Bench
from fwtui.experiment.experiment import Experiment
from fwtui.live.session import Live
from fwtui.sessions.reader import load
from fwtui.stream import events, requests
from fwtui.stream.events import FormLimit, Limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from stand_ins import answering

PACE = {"tiled-cpu": 1e-10, "serial": 8e-10, "scipy": 1e-9, "numpy": 4e-10}  # seconds per relaxation
LIMIT = Limits(t=0.0, backend="cpu", forms=(FormLimit("float32", 5e10),), complete=True)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
    """Nothing kept, and of the packages NumPy alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pretend.packages("numpy")


class Worker:
    """Says of every run what a worker would, with made-up times that grow from turn to turn."""

    def __init__(self, pretend: Pretend, limits: Limits = LIMIT, most: int = 1000, **verdicts: str):
        """`most`: runs, before the user interrupts it."""
        self.order: list[tuple[str, int]] = []
        self.limits, self.most, self.verdicts = limits, most, verdicts
        pretend.children(answering(self.answer))

    def answer(self, request: Any) -> Iterable[events.Event]:
        if isinstance(request, requests.ProbeRequest):
            return [replace(self.limits, backend=request.backend)]
        assert request.brief
        if len(self.order) == self.most:
            raise KeyboardInterrupt
        return self.run(request.run, request.experiment)

    def run(self, number: int, e: Experiment) -> Iterator[events.Event]:
        self.order.append((e.kernel, e.repeats))
        turn = sum(name == e.kernel for name, _ in self.order)
        seconds = PACE[e.kernel] * e.n**3 * (1 + turn / 10)
        yield events.RunStarted(t=0.0, run=number, experiment=e, title="", backend="cpu", phases=())
        verdict = self.verdicts.get(e.kernel.replace("-", "_"), "verified")
        if verdict == "dies":
            yield events.RunDone(t=0.0, run=number, outcome="failed", message="it broke")
            return
        for _ in range(e.repeats):
            yield events.Sample(t=0.1, run=number, seconds=seconds, since=0.0)
        yield events.Verdict(t=0.2, run=number, verdict=verdict, how="wrong at (0, 1)", checksum="ab")
        yield events.RunDone(t=0.2, run=number, outcome="done", median=seconds, count=e.repeats)


NAMES = ("tiled-cpu", "serial", "scipy", "numpy")


def bench(rounds: int = 3, seconds: float = 100.0) -> Bench:
    return Bench(Live(telemetry_hz=0), rounds, seconds, lambda text: None)


def experiments(n: int, *names: str) -> list[Experiment]:
    return [Experiment(kernel=name, n=n) for name in names or NAMES]


def test_everybody_has_a_turn_before_anybody_has_another(pretend: Pretend) -> None:
    worker = Worker(pretend)
    heat = bench().heat(experiments(200), 1.0)
    assert [name for name, _ in worker.order] == [*NAMES, *NAMES, *NAMES]
    assert heat.left_out == [] and not heat.cut_short
    assert [entrant.name for entrant in heat.ranking] == ["tiled-cpu", "numpy", "serial", "scipy"]
    assert heat.best_peer is not None and heat.best_peer.name == "numpy"
    tiled = heat.entrants[0]
    # of equally many passes of each turn the middle one's
    assert tiled.seconds == pytest.approx(1e-10 * 200**3 * 1.2) and tiled.spread == pytest.approx(0.1 / 1.2)
    assert heat.ratio(tiled) == pytest.approx(4.0) and heat.ratio(heat.best_peer) == 1.0


def test_what_is_wrong_has_no_time_what_dies_is_left_out_with_its_last_words_and_the_others_go_on(pretend: Pretend) -> None:
    worker = Worker(pretend, numpy="wrong", serial="dies")
    heat = bench().heat(experiments(200), 1.0)
    wrong = heat.ranking[-1]
    assert wrong.name == "numpy" and wrong.seconds is None and wrong.run.rate is None and heat.ratio(wrong) is None
    assert heat.best_peer is not None and heat.best_peer.name == "scipy"
    assert heat.left_out == [("serial", "it broke")]
    assert [name for name, _ in worker.order].count("serial") == 1 and len(worker.order) == 10


def test_who_would_take_too_long_is_left_out_and_named(pretend: Pretend) -> None:
    worker = Worker(pretend)
    measured = bench(seconds=200.0)
    measured.heat(experiments(200), 0.5)
    heat = measured.heat(experiments(10_000), 1.0)
    assert heat.entrants == [] and len(worker.order) == 12
    why = dict(heat.left_out)
    assert set(why) == set(NAMES) and why["scipy"] == "expected to take 20 min 00 s, more than 60 s a pass"
    # of 30 s the three turns of tiled-cpu take 6 and those of numpy 12; scipy's would take 29
    some = measured.heat(experiments(2000), 0.15)
    assert [e.name for e in some.entrants] == ["tiled-cpu", "numpy"]
    assert dict(some.left_out)["scipy"].startswith("expected to take 28.8 s, and ")


def test_who_was_not_yet_run_shows_first_how_fast_it_is(pretend: Pretend) -> None:
    worker = Worker(pretend, serial="dies")
    measured = bench(rounds=1, seconds=200.0)
    heat = measured.heat(experiments(3000), 1.0)
    assert worker.order[:4] == [(name, 1) for name in NAMES], "one small pass each"
    # by the guess for what nobody knows even tiled-cpu would take a minute
    assert [e.name for e in heat.entrants] == ["tiled-cpu", "scipy", "numpy"]
    assert heat.left_out == [("serial", "it broke")]
    assert all(run.experiment.n == 3000 for entrant in heat.entrants for run in entrant.runs)
    measured.heat(experiments(3200), 1.0)
    assert len(worker.order) == 4 + 3 + 1 + 3, "serial is asked again, the others are known"


def test_one_configuration_takes_part_once_and_what_cannot_run_not_at_all(pretend: Pretend) -> None:
    worker = Worker(pretend)
    heat = bench(rounds=1).heat(experiments(100, "auto", "tiled-cpu", "torch-cpu", "naive"), 1.0)
    assert worker.order[0][0] == "tiled-cpu" and len(worker.order) == 1, "auto's pick is that one"
    assert heat.entrants[0].experiment.auto
    why = dict(heat.left_out)
    assert set(why) == {"torch-cpu", "naive"}
    assert "torch is not installed here" in why["torch-cpu"] and "needs a GPU" in why["naive"]


def test_the_command_prints_a_table_json_and_markdown(
    pretend: Pretend, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Worker(pretend)
    words = ["bench", "-n", "100,200", "-k", "auto,serial", "--rounds", "2", "--repeats", "3", "--telemetry-hz", "0"]
    session = tmp_path / "bench.fwt.jsonl"
    assert main([*words, "--record", str(session)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    head = next(line for line in lines if line.startswith("  n"))
    assert " ".join(head.split()) == "n type kernel on choices total rate of limit vs best peer result"
    best = next(line for line in lines if "200  float32  tiled-cpu (auto)" in line)
    # 1e10 relaxations/s at the slower of two turns; both count alike
    assert ("8.70 Grelax/s" in best and "17.4 %" in best and best.split()[-2:] == ["3.48x", "verified"]) or "x  verified" in best
    assert any(line.endswith("best peer  verified") and "numpy" in line for line in lines)
    assert "round 2 of 2: numpy, n 200 float32" in err
    assert len([line for line in load(session).lines if isinstance(line.event, events.RunDone)]) == 16
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first = told["results"][0]
    assert (first["kernel"], first["auto"], first["n"], first["passes"]) == ("tiled-cpu", "best known", 100, 6)
    assert first["best_peer"] == "numpy" and first["ratio_to_best_peer"] == pytest.approx(4.0)
    assert first["share_of_limit"] == pytest.approx(first["relaxations_per_second"] / 5e10) and first["limit_form"] == "float32"
    assert len(first["turns"]) == 2 and first["verified"] is True and told["left_out"] == []
    assert "numpy" in told["versions"] and told["machine"]["gpu"] is None
    assert main([*words, "--markdown", "--peers", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| n | type | kernel |") and lines[1].startswith("| ---: | --- | --- |")
    assert all(line.startswith("| ") for line in lines[:6]) and "scipy" not in "".join(lines[:6])


def test_the_command_says_when_something_is_wrong(pretend: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    Worker(pretend, serial="wrong")
    assert main(["bench", "-n", "64", "-k", "serial", "--peers", "numpy", "--rounds", "1", "--telemetry-hz", "0"]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if "serial" in line)
    assert "WRONG: wrong at (0, 1)" in line and "n/a" in line
    for bad, sentence in (
        (["--rounds", "0"], "rounds 0 is outside 1 to 100"),
        (["--seconds", "0"], "seconds 0 is outside 1 to 86400"),
        (["--repeats", "-1"], "repeats -1 is outside 0 to 1000"),
        (["--peers", "julia"], "there is no peer 'julia'; choose one of scipy, numpy"),
        (["--dtype", "float64"], "float64"),
        (["--device", "simulator"], "nothing is timed in the simulator"),
        (["-k", "floyd"], "there is no kernel 'floyd'"),
    ):
        assert main(["bench", "-n", "64", "--telemetry-hz", "0", *bad]) in (1, 2), bad
        out, err = capsys.readouterr()
        assert sentence in out + err, bad


@pytest.mark.parametrize(("device", "nouns"), [("auto", ["the CPU"]), ("0", ["the CPU", "GPU 0"])])
def test_a_limit_that_cannot_be_measured_stops_nothing(
    device: str, nouns: list[str], pretend: Pretend, capsys: pytest.CaptureFixture[str]
) -> None:
    Worker(pretend, Limits(t=0.0, backend="cpu", complete=True, note="the probe is wrong"))
    words = ["bench", "-n", "64", "-k", "serial,naive", "--peers", "none", "--rounds", "1", "--json", "--telemetry-hz", "0"]
    assert main([*words, "--device", device]) == 0
    out, err = capsys.readouterr()
    (result,) = json.loads(out)["results"]
    assert result["share_of_limit"] is None and result["seconds"] > 0
    told = [line for line in err.splitlines() if "limit" in line]
    sentences = ("measuring {}'s limit", "{}'s limit is not known: the probe is wrong")
    assert told == [f"fwtui: {sentence.format(noun)}" for noun in nouns for sentence in sentences]


def test_an_interrupt_shows_what_was_measured(pretend: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    Worker(pretend, most=3)
    assert main(["bench", "-n", "64", "-k", "tiled-cpu,serial", "--rounds", "2", "--json", "--telemetry-hz", "0"]) == 130
    told = json.loads(capsys.readouterr().out)
    assert [r["kernel"] for r in told["results"]] == ["tiled-cpu", "serial", "scipy"]


def test_kernels_and_packages_really_run_side_by_side(tmp_path: Path) -> None:
    limits.save(Limits(t=0.0, backend="cpu", forms=(FormLimit("float32", 1e11),), complete=True))
    words = ["bench", "--json", "-n", "48", "-k", "serial", "--peers", "scipy,numpy", "--rounds", "2", "--repeats", "2"]
    done = fwtui(tmp_path, *words, "--telemetry-hz", "0")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert {r["kernel"] for r in results} == {"serial", "scipy", "numpy"}
    assert all(r["verified"] and r["seconds"] > 0 and r["passes"] == 4 and 0 < r["share_of_limit"] < 1 for r in results)
    assert len({r["checksum"] for r in results}) == 1, "the same graph"
