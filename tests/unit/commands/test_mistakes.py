"""Mistakes on the command line: one sentence with the probable correction, and exit code 2."""

import json
from pathlib import Path

import pytest
from processes import DATA

from fwtui.__main__ import main

LONG = "9" * 5000
GOLDEN = str(DATA / "golden-v1.fwt.jsonl")
MISTAKES: list[tuple[list[str], str]] = [
    (["run", "--json", "-n", "0"], "n 0 is outside 1 to 262144"),
    (["run", "-k", "serial,tiled-cpu", "-n", "8", "--tile", "48", "--record", "r"], "tile 48 is not supported by tiled-cpu"),
    (["run", "--json", "-n", "64,x"], "'x' is not an integer"),
    (["run", "--json", "-k", "serial", "--threads", "64"], "serial has no option 'threads'"),
    (["run", "--json", "--telemetry-hz", "11"], "telemetry rate 11 Hz is neither 0 nor in 0.01 to 10 Hz"),
    (["run", "--json", "--telemetry-hz", "often"], "--telemetry-hz"),
    (["run", "--json", "--telemetry-hz", "-1"], "telemetry rate -1 Hz is neither 0 nor in 0.01 to 10 Hz"),
    (["run", "--json", "--colour"], "--colour"),
    (
        ["run", "--json", "--file", "graph.gr", "-n", "8"],
        "--file and --n, which is for generated graphs, cannot be combined; pass only one",
    ),
    (
        ["run", "--json", "--file", "graph.gr", "--kind", "grid"],
        "--file and --kind, which is for generated graphs, cannot be combined",
    ),
    (["run", "--json", "--record", "/nowhere/at/all.fwt.jsonl"], "cannot be recorded to"),
    (["run", "--json", "-k", "serial", "-n", "8", "--negative", "0.3", "--dtype", "int16"], "int16 takes no negative weights"),
    (["run", "--json", "--dtype", "\x1b[31mred"], "[31mred is not supported"),
    (
        ["sweep", "--device", "9", "-k", "serial,tiled-cpu", "-n", "8,16"],
        "serial and tiled-cpu run on the CPU, which has no device 9",
    ),
    (["run", "--device", "9", "-k", "tiled-cpu"], "tiled-cpu runs on the CPU, which has no device 9; omit --device"),
    (
        ["run", "--device", "simulator", "-k", "serial,tiled-cpu"],
        "serial and tiled-cpu run on the CPU, which has no device simul",
    ),
    (["run", "--json", "-n", "\n99999999\n"], "is outside 1 to 262144"),
    (["solve", "a.gr", "b.gr"], "unrecognized arguments: b.gr; see `fwtui solve --help`\n"),
    (["replay", "nothing-of-this-name"], "there is no session 'nothing-of-this-name'; "),
    (["render", GOLDEN, "-o", "x.svg", "--size", "1001x10"], "size '1001x10' is not columns x rows up to 500x200"),
    (["replay", GOLDEN, "--max-gap", "1e9"], "is outside 0.01 to 3600 s; pass something like --max-gap 1"),
    (["render", "x"], "the following arguments are required: -o/--out; see `fwtui render --help`"),
    (["replay", "--speed", "fast", "x"], "argument --speed: invalid float value: 'fast'; see `fwtui replay --help`"),
    (["rnu"], "there is no command 'rnu'; did you mean run?"),
    (["xyzzy"], "there is no command 'xyzzy'; `fwtui --help --all` lists all of them"),
    (["export", "x", "--also", "x.cast"], "unrecognized arguments: --also x.cast; see `fwtui export --help`"),
    (["--telemetry-hz", "often"], "argument --telemetry-hz: invalid float value: 'often'; see `fwtui --help`"),
    (["run", "--jsn"], "unrecognized arguments: --jsn; did you mean --json? `fwtui run --help` lists them all"),
    (["list", "--sort", "dat"], "argument --sort: 'dat' is not supported; did you mean date? `fwtui list --help` lists them all"),
    (["run", "-k", "Katzkider"], "there is no kernel 'Katzkider'; did you mean katz-kider?"),
    (["replay", "h200-n4069"], "there is no session 'h200-n4069'; did you mean h200-n4096-naive-blocked?"),
    (["learn", "nave"], "the course has no step 'nave'; did you mean naive?"),
    (
        ["render", "lecture-tiles", "-o", "x.svg", "--screen", "compair"],
        "there is no screen 'compair' in a replay; choose one of",
    ),
    (
        ["render", "lecture-tiles", "-o", "x.svg", "--theme", "dracla"],
        "--theme: there is no theme 'dracla'; did you mean dracula?",
    ),
    (["run", "--kern", "naive"], "unrecognized arguments: --kern naive; did you mean --kernel?"),
    (["--version", "foo"], "--version takes no arguments; omit 'foo'"),
    (["render", "h200-n4096-naive-blocked", "-o", "x.svg", "--size", f"{LONG}x1"], "size '9999"),
    (["replay", LONG], "there is no session '9999"),
    (["compare", f"h200-n4096-naive-blocked:{LONG}"], "has no run 9999"),
    (["check", LONG], "there is no session '9999"),
    (["check", ""], "there is no session ''"),
    (["export", GOLDEN, "-o", "x.png"], "'x.png' ends in none of .csv, .jsonl, .md, "),
    (["export", GOLDEN, "--format", "csv", "-o", "x.perfetto.json"], "ends in .perfetto.json, but --format is csv"),
    (["export", GOLDEN, "--format", "csv", "-o", "x.html"], "ends in .html, but --format is csv; pass only one"),
    (["export", GOLDEN, "everything"], "'everything' is not supported; choose one of runs, phases"),
    (["export", GOLDEN, "-o", "a.html", "--size", "0x0"], "is not columns x rows"),
    (["export", GOLDEN, "-o", "a.svg", "--size", "59x16"], "size 59x16 is too small for a screen; pass at least 60x16"),
    (["export", GOLDEN, "-o", "a.html", "--fps", "99"], "99 pictures a second"),
    (["export", GOLDEN, "-o", "a.html", "--speed", "3"], "speed 3 is not supported"),
    (["export", GOLDEN, "-o", "a.html", "--max-gap", "-1"], "a gap of -1 s"),
    (["export", GOLDEN, "-o", "a.html", "--from", "2", "--to", "1"], "from 2 to 1"),
    (["export", GOLDEN, "-o", "a.html", "--from", "99"], "after the end"),
    (["export", GOLDEN, "-o", "a.html", "--screen", "nowhere"], "no screen 'nowhere'"),
    (["export", GOLDEN, "-o", "a.html", "--theme", "nothing"], "no theme 'nothing'"),
    (["export", GOLDEN, "phases", "-o", "a.html"], "omit 'phases'"),
    (["export", GOLDEN, "-o", "a.gif"], "ends in none of"),
    (["export", GOLDEN, "-o", "a.csv", "--fps", "3"], "--fps applies only to a replay"),
    (["new", "mine.txt"], "'mine.txt' does not end in .py or .cu, as a kernel's file must; write mine.py, or mine.cu"),
    (["new", "mine.py", "--from", "fast"], "there is no rung 'fast'; choose one of serial, scipy,"),
    (["new", "mine.cu", "--from", "naive"], "there is no example 'naive' in CUDA C++; choose one of one-thread,"),
    (["new", ""], "'' is not the name of a file; pass mine.py"),
    (["new", "there"], "'there' is not the name of a file; pass there/mine.py"),
    (["new", "a/b"], "'a/b' does not end in .py or .cu, as a kernel's file must; write a/b.py"),
    (["new", "a/b.py"], "there is no folder a for b.py; create it or choose another"),
    (["new", "link.py"], "link.py is a link to a file that does not exist; remove the link, or choose another name"),
    (["watch", "my.py", "--for", "sm_91"], "'sm_91' is not a supported GPU architecture; choose one of sm_50, "),
    (["watch", "my.py", "-n", "many"], "'many'"),
    (["watch", "my.py", "--json"], "--json prints the findings of one check; add --once, and omit --course"),
    (["watch", "my.py", "--device", "moon"], "device 'moon' is neither auto, simulator nor a GPU's number"),
    (["compare", "h200-n4096-naive-blocked:1"], "is one run, and a comparison needs two; name another session or run"),
    (["compare", "h200-n4096-naive-blocked:99", "h200-n4096-naive-blocked:1"], "has no run 99"),
    (["replay", GOLDEN, "--at=nan"], "moment 'nan' is not a non-negative time; pass seconds (--at 12.5) or minutes (--at 1:30)"),
    (["replay", "--json", GOLDEN, "--at=-1"], "moment '-1' is not a non-negative time; pass seconds"),
    (["render", GOLDEN, "-o", "x.svg", "--at=inf"], "moment 'inf' is not a non-negative time"),
    (["render", GOLDEN, "-o", "x.svg", "--card", "1"], "there is no card 1 in this session, which has 0 cue cards; omit --card"),
    (["render", "lecture-tiles", "-o", "x.svg", "--card", "10"], "which has 9 cue cards; pass 1 to 9"),
    (["render", "lecture-tiles", "-o", "x.svg", "--card=2", "--answer"], "card 2 has no question with an answer; omit --answer"),
    (["render", "lecture-tiles", "-o", "x.svg", "--answer"], "--answer needs a cue card; pass --card N, too"),
    (["render", "lecture-tiles", "-o", "x.svg", "--present", "--at=14"], "may have the time 14 s; replace --at by --card 1 to 9"),
    (["replay", GOLDEN, "--speed=nan"], "is not supported; choose one of 0.25, 0.5, 1, 2, 4, 8, 16"),
    (["replay", "--table", GOLDEN, "--speed=3"], "is not supported; choose one of 0.25, 0.5, 1, 2, 4, 8, 16"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[ascii(" ".join(words)[:60]) for words, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_changes_nothing(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("there").mkdir()
    Path("link.py").symlink_to("nowhere.py")
    Path("my.py").touch()
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("fwtui: ") and sentence in err and err.count("\n") == 1 and len(err) < 600 and "\x1b" not in err
    assert [json.loads(line)["state"] for line in out.splitlines()] in ([], ["refused"]), "a run that was refused has its line"
    assert {path.name for path in tmp_path.iterdir()} == {"there", "link.py", "my.py"}


@pytest.mark.parametrize("driver", ["nope", "os:path", "textual.driver:Nobody"])
def test_a_missing_driver_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], driver: str) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", driver)
    monkeypatch.setattr("textual.constants.DRIVER", driver)
    assert main(["dashboard", "--read-only"]) == 2
    assert f"TEXTUAL_DRIVER is '{driver}', which is not a driver of Textual; unset it" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["solve g.gr -o", "graph -n 8 -o", "export lecture-tiles -o"])
def test_an_empty_name_of_an_output_is_refused(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main([*words.split(), ""]) == 2
    assert "-o is empty; pass a file name" in capsys.readouterr().err


def test_a_dashboard_is_not_drawn_on_a_web_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    assert main(["dashboard"]) == 2
    assert "not served to web pages" in capsys.readouterr().err
