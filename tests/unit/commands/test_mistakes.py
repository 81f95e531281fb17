"""What a user gets wrong on the command line: one sentence, with what was probably meant, and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fwtui.__main__ import main

LONG = "9" * 5000
MISTAKES: list[tuple[list[str], str]] = [
    (["run", "--json", "-n", "0"], "n 0 is outside 1 to 262144"),
    (["run", "--json", "-n", "64,x"], "'x' is not a whole number"),
    (["run", "--json", "-k", "serial", "--threads", "64"], "serial has no option 'threads'"),
    (["run", "--json", "--telemetry-hz", "11"], "telemetry rate 11 is neither 0 nor 0.01 to 10"),
    (["run", "--json", "--telemetry-hz", "often"], "--telemetry-hz"),
    (["run", "--json", "--record-hz", "-1"], "recording rate -1 is neither 0 nor 0.01 to 10"),
    (["run", "--json", "--colour"], "--colour"),
    (
        ["run", "--json", "--file", "graph.gr", "-n", "8"],
        "--file reads a graph, and --n is for one that is generated; leave out one of them",
    ),
    (["run", "--json", "--file", "graph.gr", "--kind", "grid"], "--file reads a graph, and --kind is for one that is generated"),
    (["run", "--json", "--record", "/nowhere/at/all.fwt.jsonl"], "cannot be recorded to"),
    (["run", "--json", "-k", "serial", "-n", "8", "--negative", "0.3", "--dtype", "int16"], "int16 takes no negative weights"),
    (["run", "--json", "--dtype", "\x1b[31mred"], "[31mred is not offered"),
    (["run", "--json", "-n", "\n99999999\n"], "is outside 1 to 262144"),
    (["solve", "a.gr", "b.gr"], "unrecognized arguments: b.gr; see `fwtui solve --help`\n"),
    (["replay", "nothing-of-this-name"], "there is no session 'nothing-of-this-name'; "),
    (["render", "x"], "the following arguments are required: -o/--out; see `fwtui render --help`"),
    (["replay", "--speed", "fast", "x"], "argument --speed: invalid float value: 'fast'; see `fwtui replay --help`"),
    (["rnu"], "there is no command 'rnu'; did you mean run?"),
    (["xyzzy"], "there is no command 'xyzzy'; `fwtui --help --all` lists all of them"),
    (["--bogus"], "unrecognized arguments: --bogus; see `fwtui --help`"),
    (["--telemetry-hz", "often"], "argument --telemetry-hz: invalid float value: 'often'; see `fwtui --help`"),
    (["run", "--tabel"], "unrecognized arguments: --tabel; did you mean --table? `fwtui run --help` lists them all"),
    (
        ["list", "--sort", "dat"],
        "argument --sort: 'dat' is not offered; did you mean date? `fwtui list --help` lists them all",
    ),
    (["run", "-k", "Katzkider"], "there is no kernel 'Katzkider'; did you mean katz-kider?"),
    (["replay", "h200-n4069"], "there is no session 'h200-n4069'; did you mean h200-n4096-naive-blocked?"),
    (["learn", "nave"], "there is no step 'nave' in the course; did you mean naive?"),
    (
        ["render", "lecture-tiles", "-o", "x.svg", "--screen", "compair"],
        "there is no screen 'compair' in a replay; choose one of",
    ),
    (
        ["render", "lecture-tiles", "-o", "x.svg", "--theme", "dracla"],
        "--theme: there is no theme 'dracla'; did you mean dracula?",
    ),
    (["run", "--kern", "naive"], "unrecognized arguments: --kern naive; did you mean --kernel?"),
    (["--version", "foo"], "--version stands alone; leave out 'foo'"),
    (["render", "h200-n4096-naive-blocked", "-o", "x.svg", "--size", f"{LONG}x1"], "size '9999"),
    (["replay", LONG], "there is no session '9999"),
    (["compare", f"h200-n4096-naive-blocked:{LONG}"], "has no run 9999"),
    (["check", LONG], "there is no session '9999"),
    (["check", ""], "there is no session ''"),
    (["bench", "-n", ""], "n '' is not a whole number"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[ascii(" ".join(words)[:60]) for words, _ in MISTAKES])
def test_a_mistake_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("fwtui: ") and sentence in err and err.count("\n") == 1 and len(err) < 600 and "\x1b" not in err
    assert [json.loads(line)["state"] for line in out.splitlines()] in ([], ["refused"]), "a run that was refused has its line"


def test_a_setting_that_was_meant_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text("[experiment]\nkernal = 'naive'\n")
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "config.toml"))
    assert main(["config"]) == 2
    assert "experiment.kernal is not a setting; did you mean kernel?" in capsys.readouterr().err


def test_a_dashboard_is_not_drawn_on_a_web_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    assert main(["dashboard"]) == 2
    assert "not served to web pages" in capsys.readouterr().err
