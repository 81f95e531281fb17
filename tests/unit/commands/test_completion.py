"""Completion scripts: made for each shell, and carried out by bash."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fwtui import commands
from fwtui.__main__ import main
from fwtui.commands import completion

TRY = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
function=$(complete -p fwtui); function=${function##*-F }
${function%% *} fwtui "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A script for bash, where the user has sessions of good and bad names."""
    own = tmp_path / "my own" / "sessions"
    own.mkdir(parents=True)
    for name in ("mine-1", "mine-$(touch gone)", "mine-`touch gone`", "mine two"):
        (own / f"{name}.fwt.jsonl").touch()
    monkeypatch.setattr(completion, "own_folder", lambda: own)
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "fwtui.bash"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_kernels_and_sessions(script: Path) -> None:
    def completed(*words: str) -> set[str]:
        command = ["bash", "-c", TRY, "bash", str(script), "fwtui", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=script.parent)
        assert done.returncode == 0 and done.stderr == ""
        return set(done.stdout.split("\n")) - {""}

    assert completed("swe") == {"sweep"}
    assert completed("run", "--tab") == {"--table"}
    assert completed("run", "-k", "katz") == {"katz-kider"}
    assert completed("export", "lecture-tiles", "ph") == {"phases"}
    assert completed("replay", "lec") == {"lecture-tiles"}
    assert completed("replay", "mine") == {"mine-1"}, "a shell could carry out the others"
    assert not (script.parent / "gone").exists()


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_is_told_of_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in (*commands.names(), "katz-kider", "telemetry-hz"))
