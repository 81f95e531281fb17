"""The command `fwtui compare`."""

import gzip
import json
from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME
from fwtui.stream import codec, events

RECORDINGS = Path(__file__).resolve().parents[2] / "recorded"
RECORDED = RECORDINGS / "h200-n4096-naive-blocked.fwt.jsonl.gz"
OTHER = RECORDINGS / "h200-n1024-naive-blocked.fwt.jsonl.gz"


def test_the_command_compares_recorded_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", f"{RECORDED}:3", f"{RECORDED}:4", f"{RECORDED}:8", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["run"], r["baseline"], r["verdict"]) for r in told] == [(4, 3, FASTER), (8, 3, FASTER)]
    assert told[1]["speedup"] == pytest.approx(0.2553765 / 0.0314466, rel=1e-4)
    assert told[1]["interval"][0] < told[1]["speedup"] < told[1]["interval"][1]
    assert main(["compare", str(RECORDED)]) == 0
    shown = capsys.readouterr().out
    assert "8.12x" in shown and shown.count("FASTER") == 3 and shown.count("baseline") == 1
    assert main(["compare", str(RECORDED), str(RECORDED), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {r["verdict"] for r in told} == {SAME} and len(told) == 4
    assert all(r["interval"][0] <= r["speedup"] <= r["interval"][1] for r in told)
    assert main(["compare", f"{RECORDED}:8", f"{RECORDED}:3", "--fail-slower"]) == 1
    assert main(["compare", f"{RECORDED}:3", f"{RECORDED}:8", "--fail-slower"]) == 0


def test_the_command_reports_changes_of_stall_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [
        events.WarpSamples(t=99.0, run=run, op="rest", reasons=reasons, mix={"LDS": 3, "FMNMX": 1}, relaxations=1)
        for run, reasons in ((4, {"barrier": 9, "wait": 1}), (8, {"barrier": 1, "wait": 9}))
    ]
    path = tmp_path / "sampled.fwt.jsonl"
    path.write_bytes(b"".join([*gzip.decompress(RECORDED.read_bytes()).splitlines(keepends=True)[:-1], *map(codec.encode, told)]))
    assert main(["compare", f"{path}:4", f"{path}:8", "--phases"]) == 1, "the session has no end"
    shown = capsys.readouterr().out
    stalled = "sampled:8: warps stall on wait (fixed-latency dependency) in 90 % of PC samples"
    assert f"{stalled}; 4.00 instructions per relaxation" in shown
    assert "barrier (waits for its block) 90.0 % 10.0 % -80 points" in [" ".join(row.split()) for row in shown.split("\n")]
    assert main(["compare", f"{path}:4", f"{path}:8", "--json"]) == 1
    (data,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert data["warps"]["reasons"][0] == {"reason": "barrier", "baseline": 0.9, "run": 0.1}


def test_incomparable_runs_have_no_ratio_and_one_reason(capsys: pytest.CaptureFixture[str]) -> None:
    whole = [f"{OTHER}:{run}" for run in (5, 6)]
    assert main(["compare", f"{RECORDED}:3", *whole, f"{RECORDED}:8", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["verdict"] for r in told] == [NOT_COMPARED, NOT_COMPARED, FASTER]
    for one in told[:2]:
        assert one["speedup"] is one["interval"] is None and "n = 1024 is not the same work" in one["why"]
        assert all(part["change"] is None for part in (*one["phases"], *one["stages"]))
    assert main(["compare", f"{RECORDED}:3", *whole, "--phases"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("NOT COMPARED") == 2 and shown.count("is not the same work") == 1
    assert "%" not in shown.partition("is not the same work")[2]
    below = next(line for line in shown.splitlines() if "is not the same work" in line)
    assert below.startswith("not compared: n = 1024")
    assert main(["compare", "h200-density", "--json"]) == 0
    told = {(one["run"], one["baseline"]) for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {(2, 1), (8, 7), (22, 21)} <= told and len(told) == 11
