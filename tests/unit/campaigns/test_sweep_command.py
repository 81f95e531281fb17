"""The command `fwtui sweep`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fwtui.__main__ import main, parser
from fwtui.commands.sweep import asked
from fwtui.sessions.library import load_model


def test_the_command_prints_cells_findings_and_what_was_left_out_also_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["-k", "serial,tiled-cpu", "-n", "16..32", "--tile", "7", "--repeats", "2", "--telemetry-hz", "0"]
    assert main(["sweep", *asked]) == 0
    out = capsys.readouterr().out
    assert "Fastest at n = 32" in out and "time ~ n^" not in out, "two sizes say nothing of an exponent"
    assert "left out: kernel tiled-cpu, n 16: tile 7 is not offered by tiled-cpu" in out
    assert out.count("serial ") >= 2 and "verified" in out
    assert main(["sweep", "-k", "serial", "-n", "30000,40000", "--within", "1", "--telemetry-hz", "0"]) == 1
    assert "left out: n 30000: expected to take" in capsys.readouterr().out
    assert main(["sweep", "-k", "serial", "-n", "8,16", "--repeats", "2", "--telemetry-hz", "0", "--json"]) == 0
    *cells, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [cell["at"] for cell in cells] == [{"kernel": "serial", "n": "8"}, {"kernel": "serial", "n": "16"}]
    assert all(cell["verified"] and cell["seconds"] > 0 for cell in cells)
    assert last["findings"]["fits"] == {}


def test_a_question_fills_in_what_is_not_given() -> None:
    given = parser("sweep").parse_args(["sweep", "--question", "density", "-n", "100"])
    base, axes = asked(given, False)
    told = {axis.name: axis.values for axis in axes if axis.name != "density"}
    assert told == {"kernel": ("tiled-cpu", "sparse-cpu"), "n": ("100",)}
    assert base.kernel == "tiled-cpu" and len(next(axis for axis in axes if axis.name == "density").values) == 7


def test_the_command_goes_on_where_a_recorded_one_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sweep", "-k", "serial", "--repeats", "2", "--telemetry-hz", "0"]
    first, second = tmp_path / "first.fwt.jsonl", tmp_path / "second.fwt.jsonl"
    assert main([*asked, "-n", "8,16", "--record", str(first)]) == 0
    capsys.readouterr()
    assert main([*asked, "-n", "8,16,24", "--record", str(second), "--resume", str(first)]) == 0
    out = capsys.readouterr().out
    assert len(load_model(second)[0].runs) == 1 and "(3 sizes)" in out
    recorded = Path(__file__).resolve().parents[2] / "recorded" / "h200-n4096-naive-blocked.fwt.jsonl.gz"
    assert main([*asked, "-n", "8,16", "--resume", str(recorded)]) == 2
    assert "was recorded on NVIDIA H200; a sweep goes on where it began" in capsys.readouterr().err
    assert main([*asked, "--file", "graph.gr", "-n", "8,16"]) == 2
    assert "--file reads a graph, and --n is for one that is generated" in capsys.readouterr().err


def test_an_interrupted_command_prints_what_it_has(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "fwtui", "sweep", "-k", "serial", "-n", "8,2048", "--repeats", "9", "--within", "9999"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3]), "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert child.stderr is not None
    for line in child.stderr:
        if "1 of 2" in line:
            break
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 130
    first = out.splitlines()[1]
    assert first.split()[0] == "8" and "verified" in first
    assert "left out: n 2048: not run" in out or "cancelled" in out


@pytest.mark.slow
def test_one_graph_on_two_processes_and_a_forecast(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--devices", "1,2", "-n", "256", "--repeats", "2", "--telemetry-hz", "0", "--predict", "8"]) == 0
    out = capsys.readouterr().out
    assert "n 256: 2 devices do" in out and "the model is up to" in out
    head, row = out[out.index("predicted") :].splitlines()[:2]
    assert "limited by" in head and row.split()[:3] == ["n", "256", "8"]


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "64"],
        ["--within", "0", "-n", "8,9"],
        ["-n", "8,9", "-k", "serial", "--threads", "7"],
        ["-n", "8,9", "--weak"],
        ["--devices", "1,2", "--predict", "0"],
        ["--devices", "1,2", "--link", "1"],
    ],
)
def test_the_command_refuses_in_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", *words]) == 2
    assert capsys.readouterr().err.startswith("fwtui: ")
