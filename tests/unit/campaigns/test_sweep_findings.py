"""Findings of a sweep: power laws, break-evens and the fastest cell; and the command `fwtui sweep`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_sessions import Made

from fwtui.__main__ import main
from fwtui.campaigns.sweep.findings import Crossover, best, bracket, find_crossover, findings, finished, fit, series
from fwtui.experiment.experiment import Experiment, settle
from fwtui.sessions.library import load_model, resolve
from fwtui.stream.model import Model


def lines(passes: int = 5, **seconds: dict[int, float]) -> Any:
    made = Made(None)
    for kernel, times in seconds.items():
        for n, s in times.items():
            made.add(settle(Experiment(kernel=kernel.replace("_", "-"), n=n)), s, passes=passes)
    return made.model, *series(finished(made.model), "n")


def test_the_exponent_is_the_regressions_and_break_even_lies_where_the_lines_cross() -> None:
    found = fit({n: 2e-9 * n**2.5 for n in (64, 128, 256, 1024)})
    assert found is not None and found.exponent == pytest.approx(2.5)
    assert "less than n^3" in found._replace(cubic=True).sentence and "less" not in found.sentence
    assert found.error == pytest.approx(0, abs=1e-6) and (found.low, found.high, found.sizes) == (64, 1024, 4)
    assert fit({10: 1.0, 100: 1000.0}) is None and fit({64: 1.0}) is None and fit({}) is None
    points = {32: 1.0, 64: 9.0, 128: 50.0, 256: 600.0}
    slopes, covariance = np.polyfit(np.log(list(points)), np.log(list(points.values())), 1, cov=True)
    found = fit(points)
    assert found is not None
    assert (found.exponent, found.error) == pytest.approx((slopes[0], covariance[0, 0] ** 0.5))
    model, slow_start, quick_start = lines(
        serial={n: 1e-6 * n**2 for n in (32, 128, 512)}, tiled_cpu={n: 1e-8 * n**3 for n in (32, 128, 512)}
    )
    found = find_crossover(model, slow_start, quick_start)
    assert isinstance(found, Crossover)
    assert (found.early, found.late, found.low, found.high) == ("tiled-cpu", "serial", 32, 128)
    assert json.dumps([found.low, found.high]) == "[32, 128]", "sizes are whole numbers for programs, too"
    assert found.at == pytest.approx(100) and found.seconds == pytest.approx(1e-2)
    assert "serial is faster than tiled-cpu from about n = 100 on" in found.sentence
    assert find_crossover(model, quick_start, slow_start) == found


@pytest.mark.parametrize(
    ("passes", "serial", "words"),
    [
        (
            2,
            {32: 2.0, 128: 0.5, 512: 0.5},
            "at n = 128 the comparison is UNCLEAR: 2 repetitions per run are too few; use at least 5",
        ),
        (5, {32: 1.001, 128: 0.5, 512: 0.5}, "at n = 32 the comparison is SAME: time -0.2 % to +0.4 %, within 1"),
        (5, {32: 2.0, 128: 0.999, 512: 0.998}, "at n = 128 the comparison is SAME"),
    ],
)
def test_unclear_comparisons_give_no_break_even(passes: int, serial: dict[int, float], words: str) -> None:
    model, *_ = lines(passes, serial=serial, tiled_cpu={32: 1.0, 128: 1.0, 512: 1.0})
    found = findings(model, finished(model))
    assert found.crossovers == () and found.data()["unclear"] == [*found.unclear]
    assert found.unclear[0].startswith("serial may overtake tiled-cpu between n = 32 and 128, but at n = ")
    assert words in found.unclear[0] and found.unclear[0] == found.sentences()[-1]


def test_a_break_even_lies_between_clear_sizes_and_names_unclear_ones() -> None:
    model, *pair = lines(serial={32: 2.0, 64: 1.001, 128: 0.5, 512: 0.999}, tiled_cpu=dict.fromkeys((32, 64, 128, 512), 1.0))
    found = find_crossover(model, *pair)
    assert isinstance(found, Crossover) and (found.low, found.high) == (32, 128)
    assert found.sentence.endswith("from about n = 64 on (between 32 and 128); at n = 512 the comparison is SAME")


def test_an_exponent_names_its_series_and_a_row_has_only_its_own() -> None:
    made = Made(None)
    for kernel, sizes in (("serial", (64, 128, 256, 512)), ("tiled-cpu", (64, 128, 256))):
        for n in sizes:
            made.add(Experiment(kernel=kernel, n=n), n**3 / 1e6, passes=5)
    found = findings(made.model, finished(made.model))
    named = [[text for text in found.sentences(row) if "time ~" in text] for row in ("", "serial", "tiled-cpu")]
    assert named[0] == named[1] != named[2] == [] and named[0][0].startswith("serial: time ~ n^3.00")


@given(st.lists(st.tuples(st.integers(1, 2**60), st.floats(1e-320, 1e9), st.floats(1e-320, 1e9)), max_size=5))
def test_made_up_times_are_survived(told: list[tuple[int, float, float]]) -> None:
    made = Made(None)
    for n, one, other in told:
        made.add(Experiment(kernel="serial", n=n), one, passes=5)
        made.add(Experiment(kernel="tiled-cpu", n=n), other, passes=5)
    found = findings(made.model, finished(made.model))
    assert all(isinstance(sentence, str) for sentence in found.sentences()) and json.dumps(found.data())
    assert all(b.low <= b.at * (1 + 1e-9) and b.at <= b.high * (1 + 1e-9) for b in found.crossovers)


def test_a_dense_kernel_wins_from_some_density_on() -> None:
    made = Made(None)
    for density, seconds in ((0.0, 1e-4), (0.001, 1e-3), (0.01, 0.1), (0.1, 1.0)):
        made.add(settle(Experiment(kernel="sparse-cpu", n=512, density=density)), seconds, passes=5)
        made.add(settle(Experiment(kernel="tiled-cpu", n=512, density=density)), 0.01, passes=5)
    found = findings(made.model, finished(made.model))
    assert [b.sentence for b in found.crossovers] == [
        "tiled-cpu is faster than sparse-cpu from about density = 0.32 % on (between 0.1 % and 1 %)"
    ]


def test_a_kernel_that_always_wins_has_no_break_even() -> None:
    assert find_crossover(*lines(serial={32: 1.0, 64: 2.0}, tiled_cpu={32: 0.5, 64: 1.0})) is None
    assert find_crossover(*lines(serial={32: 1.0}, tiled_cpu={64: 1.0})) is None
    assert bracket({1: True, 2: False, 4: True}) == (2, 4) and bracket({}) == (None, None)
    made = Made()
    for n, cpu, gpu in ((64, 1.0, 0.5), (128, 8.0, 1.0)):
        made.add(settle(Experiment(kernel="serial", n=n)), cpu, passes=5)
        made.add(settle(Experiment(kernel="naive", n=n)), gpu, stages={"load": 1.0, "unload": 1.0}, passes=5)
    found = findings(made.model, finished(made.model)).crossovers
    assert [(b.late, b.low, b.high, b.copies) for b in found] == [("naive", 64, 128, True)]
    made = Made(None)
    for tile, seconds in (("16", 3.0), ("32", 1.0), ("64", 2.0)):
        made.add(settle(Experiment(kernel="tiled-cpu", n=256, tile=int(tile))), seconds)
    made.add(settle(Experiment(kernel="tiled-cpu", n=256, tile=128)), 0.1, verdict="unverified")
    told = best(made.model, finished(made.model))
    assert told.startswith("Fastest at n = 256: tiled-cpu, tile 32, 1.00 s")
    density, _ = load_model(resolve("h200-density"))
    told_of_sparse = best(density, density.runs.values())
    assert ", 149 us, 4,088x fewer relaxations at 905 Grelax/s; against the next, look-ahead, " in told_of_sparse
    assert told_of_sparse.endswith(", density 3e-05: 245x, FASTER.")
    assert "against the next, tiled-cpu, tile 64: UNCLEAR" in told
    assert "3.00x speedup over the slowest, tiled-cpu, tile 16" in told
    assert best(Model(), []) == ""


def test_the_command_prints_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sweep", "-k", "serial,tiled-cpu", "--tile", "7", "--repeats", "2", "--telemetry-hz", "0"]
    recorded = tmp_path / "s.fwt.jsonl"
    assert main([*asked, "-n", "8,16", "--record", str(recorded), "--json"]) == 0
    *cells, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ran = [cell for cell in cells if cell.get("verified")]
    assert [cell["at"] for cell in ran] == [{"kernel": "serial", "n": n, "tile": "7"} for n in ("8", "16")]
    assert all(cell["seconds"] > 0 for cell in ran)
    assert last["findings"]["fits"] == {}, "two sizes say nothing of an exponent"
    assert len(load_model(recorded)[0].runs) == 2
    assert main([*asked, "-n", "8,16,32"]) == 0
    out = capsys.readouterr().out
    assert "Fastest at n = 32" in out
    assert "skipped: kernel tiled-cpu, n 16: tile 7 is not supported by tiled-cpu" in out
    assert out.count("serial ") >= 2 and "verified" in out
    assert main(["sweep", "-k", "serial", "-n", "30000,40000", "--within", "1", "--telemetry-hz", "0"]) == 1
    assert "skipped: n 30000: expected to take" in capsys.readouterr().out
    assert main([*asked, "--file", "graph.gr", "-n", "8,16"]) == 2
    assert "--file and --n, which is for generated graphs, cannot be combined" in capsys.readouterr().err


def test_an_interrupted_command_prints_what_it_has(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "fwtui", "sweep", "-k", "serial", "-n", "8,2048", "--repeats", "9", "--within", "9999"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3]), "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert child.stderr is not None
    for line in child.stderr:
        if "1 of 2" in line:
            break
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 130
    first = out.splitlines()[1]
    assert first.split()[0] == "8" and "verified" in first
    assert "skipped: n 2048: not run" in out or "cancelled" in out


@pytest.mark.slow
def test_one_graph_on_two_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--devices", "1,2", "-n", "256", "--repeats", "2", "--telemetry-hz", "0"]) == 0
    assert "n 256: 2 devices reach" in capsys.readouterr().out


def test_the_command_refuses_invalid_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("-n 64", "--within 0 -n 8,9", "-n 8,9 -k serial --threads 7"):
        assert main(["sweep", *words.split()]) == 2, words
        assert capsys.readouterr().err.startswith("fwtui: ")
