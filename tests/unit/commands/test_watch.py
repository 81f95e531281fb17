"""`fwtui watch`: judged once as a process in the simulator, and what it says of versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from builders import fwtui

from fwtui.__main__ import main
from fwtui.commands.new import python
from fwtui.commands.watch import ending, listed
from fwtui.sessions.versions import Version, Versions


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])  # the trial of a right one takes long
def test_a_kernel_is_judged_once_and_the_version_before_comes_back(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(python(None, "mine"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch()
    assert main(["watch", "mine.py", "--once"]) == 2 and "say --trust to run it" in capsys.readouterr().err
    if whole:
        right = fwtui(tmp_path, "watch", "mine.py", "--once", "--trust", "--device", "simulator", "--course")
        assert right.returncode == 0, right.stdout + right.stderr
        lines = right.stdout.splitlines()
        ended = lines.index("RIGHT: right in all 13 cases, up to n = 11")
        assert lines[0] == "mine.py, save 1" and lines[ended + 1 : ended + 4] == ["version 1", "", "+ prompt 1 is done"]
        assert lines[ended + 4].startswith("prompt 2 of 5: Let one block of threads do one tile")
        plan = lines.index("+ the plan does every relaxation once, and its steps do not race")
        assert plan in (1, 2) and lines[plan + 1] == "+ n = 1, one vertex: right"
    else:
        Versions(path).keep_unjudged()
    path.write_text(path.read_text().replace("distance[i, k] + distance[k, j]", "distance[i, k] + distance[j, k]"))
    wrong = fwtui(tmp_path, "watch", "mine.py", "--once", "--trust", "--device", "simulator")
    assert wrong.returncode == 1
    assert "NOT RIGHT: n = 3, one less than a block: wrong at row " in wrong.stdout and "it began in " in wrong.stdout
    assert main(["watch", "mine.py", "--back", "1"]) == 0
    assert capsys.readouterr().out.startswith("mine.py is version 1 again, of ")
    assert path.read_text() == python(None, "mine")
    assert main(["watch", "mine.py", "--versions"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["version", "1", "2"]


def test_a_curve_is_drawn_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    saved, verdict = "2026-11-22T13:00:00+00:00", "\x1b[31mright"
    known = [
        Version(number=place, saved=saved, texts={}, verdict=verdict, right=True, seconds=1 / place, n=512) for place in (1, 2, 4)
    ]
    assert ending(known[-1], known) == ["version 4"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert ending(known[-1], known) == ["version 4; times of versions 1 to 4: █▄▂ 250 ms"]
    assert [line.split() for line in listed(known)][1] == ["1", "2026-11-22", "13:00:00", "yes", "1.00", "s", "512", "[31mright"]
