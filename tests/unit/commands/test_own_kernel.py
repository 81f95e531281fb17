"""A user's own kernel on the command line: asked about, run, recorded, and never run again by what only looks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from own_files import TELLS, written
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.commands.support.asking import add_fields, of_every_kernel
from fwtui.experiment import own_kernels
from fwtui.experiment.experiment import settle
from fwtui.machine import trust
from fwtui_kernels import registry

QUICK = ("-n", "7", "--repeats", "2", "--telemetry-hz", "0")


@pytest.fixture(autouse=True)
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> Callable[[], None]:
    """With no settings and no sessions of the user's; returns what makes this process forget the user's kernels."""
    pretend.no_own_kernels()
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "settings" / "config.toml"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "config.toml").write_text("")
    return pretend.no_own_kernels


def test_a_file_of_a_new_folder_is_not_run_unless_the_user_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "hw", more=TELLS)
    assert main(["run", "-k", f"serial,{path}", *QUICK]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "can do whatever Python can do" in said.err and "--trust" in said.err
    assert not path.with_suffix(".ran").exists() and not trust.trusted(path)
    trust.trust(path)
    assert trust.trusted(path.with_name("other.py")) and not trust.trusted(path.parent / "inner" / "other.py")


@pytest.mark.parametrize("sign", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_a_folder_that_was_named_is_trusted(sign: str, tmp_path: Path) -> None:
    named = f"{tmp_path}/hw{sign}{tmp_path}/other"
    trust.trust(Path(f"{named}/mine.py"))
    trust.trust(tmp_path / "more" / "mine.py")
    assert trust.trusted(Path(f"{named}/its.py")) and trust.trusted(tmp_path / "more" / "its.py")
    assert not any(trust.trusted(tmp_path / part / "mine.py") for part in ("hw", "other"))


def test_a_list_that_is_too_long_to_be_read_trusts_no_folder_by_the_start_of_its_name(tmp_path: Path, pretend: Pretend) -> None:
    trust.trust(tmp_path / "first" / "mine.py")
    pretend.limits(trust, LARGEST_FILE=len(f"{tmp_path}/first\n{tmp_path}/other"))
    trust.trust(tmp_path / "others" / "mine.py")
    assert trust.trusted(tmp_path / "first" / "mine.py") and not trust.trusted(tmp_path / "other" / "mine.py")


def test_a_run_of_it_is_recorded_without_its_place_and_nothing_that_looks_at_it_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    path, session = written(tmp_path / "hw", more=TELLS), tmp_path / "own.fwt.jsonl"
    assert main(["run", "-k", f"serial,{path}", "--baseline", str(path), "--trust", "--record", str(session), *QUICK]) == 0
    mine, serial = map(json.loads, capsys.readouterr().out.splitlines())
    assert (mine["kernel"], mine["verified"], mine["checksum"]) == ("mine", True, serial["checksum"])
    assert str(tmp_path / "hw") not in session.read_text() and '"kind":"source"' not in session.read_text()
    assert trust.trusted(path)
    path.with_suffix(".ran").unlink()
    forget()
    monkeypatch.chdir(path.parent)
    for words in (
        ["replay", str(session)],
        ["check", str(session)],
        ["compare", str(session), "--phases"],
        ["export", str(session), "-o", str(tmp_path / "runs.csv")],
        ["trim", str(session), "-o", str(tmp_path / "cut.fwt.jsonl"), "--runs", "1"],
        ["list", str(tmp_path)],
        ["render", str(session), "--screen", "explain", "-o", str(tmp_path / "explain.txt")],
    ):
        assert main(words) == 0, (words, capsys.readouterr().err)
    assert not path.with_suffix(".ran").exists()


@pytest.mark.parametrize(
    ("old", "new", "code", "sentence"),
    [
        pytest.param(
            "range(n):",
            "range(n)",
            2,
            "mine.py:14:22: SyntaxError: expected ':': for k in range(n)",
            marks=pytest.mark.slow,
        ),
        (
            "return CpuProgram(shape,",
            "return CpuProgram(shepe,",
            2,
            "mine.py:25: NameError: name 'shepe' is not defined: return C",
        ),
        ("np.minimum(distance, ", "np.minimum(distance + 1, ", 1, "wrong"),
    ],
)
def test_a_mistake_in_it_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, code: int, sentence: str
) -> None:
    path = written(tmp_path / "hw", "mine.py", (old, new))
    assert main(["run", "-k", str(path), "--trust", *QUICK]) == code
    said = capsys.readouterr()
    assert sentence in said.err + said.out and "Traceback" not in said.err


def test_its_own_options_are_swept_like_those_of_the_rungs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = 'options=(Option("depth", (1, 2, 3), 2, "how deep"),), dtypes='
    path = written(tmp_path, "mine.py", ("dtypes=", options), ("import Cost", "import Option, Cost"))
    assert main(["sweep", "-k", str(path), "--trust", "--option", "depth=1,3", *QUICK[:2], "--json", "--telemetry-hz", "0"]) == 0
    cells = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]
    assert [cell["experiment"]["options"] for cell in cells] == [{"depth": 1}, {"depth": 3}]
    assert main(["run", "-k", str(path), "--option", "depth=9", *QUICK]) == 2
    assert "depth 9 is not offered by mine; choose 1, 2 or 3" in capsys.readouterr().err
    assert main(["run", "-k", str(path), "--option", "width=9", *QUICK]) == 2
    assert "--option 'width=9' is not NAME=VALUE of an option that a kernel has" in capsys.readouterr().err


def test_kernels_in_the_folder_of_the_settings_are_listed_unread_and_run_by_their_names_and_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], forget: Callable[[], None]
) -> None:
    path, folder = written(tmp_path / "hw", more=TELLS), tmp_path / "hw"
    (folder / "helper.py").write_text(f"x = 1\n{TELLS}")
    (folder / "broken.py").write_text("KERNEL = (")
    (tmp_path / "settings" / "config.toml").write_text(f'kernel_folder = "{folder}"\n')

    def everything(*words: str) -> tuple[list[str], list[tuple[str, str]]]:
        parser = argparse.ArgumentParser()
        add_fields(parser)
        fits, left_out = of_every_kernel(parser.parse_args(["-n", "7", *words]), False, settle)
        return [e.kernel for e in fits], [(name, why) for name, why in left_out if name not in registry()]

    assert main(["kernels", "--json"]) == 0 and main(["kernels"]) == 0
    said = capsys.readouterr().out
    listed = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [kernel["id"] for kernel in listed if "file" in kernel] == ["broken", "mine"] and "Row by row, in NumPy." in said
    names, left_out = everything()
    assert "serial" in names and "mine" not in names and [name for name, _ in left_out] == ["broken, mine"]
    assert "--trust" in left_out[0][1] and not any(folder.glob("*.ran"))
    names, left_out = everything("--trust")
    assert names[-1] == "mine" and left_out == [("broken", "broken.py:1:10: SyntaxError: '(' was never closed: KERNEL = (")]
    forget()
    assert main(["sweep", "-k", "all", "-n", "7,8", "--telemetry-hz", "0", "--within", "1"]) == 1, "there is no time for any"
    told = capsys.readouterr()
    assert "left out: broken: broken.py" in told.err and "kernel mine, n 7: expected to take" in told.out
    forget()
    assert main(["run", "-k", "mine", *QUICK]) == 0
    assert json.loads(capsys.readouterr().out)["experiment"]["code"] == own_kernels.fingerprint(path)


@pytest.mark.slow
def test_a_sweep_goes_on_with_what_was_measured_of_this_file_and_of_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, session = written(tmp_path / "hw"), tmp_path / "swept.fwt.jsonl"
    words = ["sweep", "-k", str(path), "--trust", "-n", "6,7", "--telemetry-hz", "0", "--json"]
    assert main([*words, "--record", str(session)]) == 0
    assert main([*words, "--resume", str(session)]) == 0
    assert "2 of 2" in (said := capsys.readouterr().err) and said.count(" of 2: ") == 2, "nothing was measured twice"
    path.write_text(path.read_text() + "# changed\n")
    assert main([*words, "--resume", str(session)]) == 0
    assert capsys.readouterr().err.count(" of 2: ") == 2
