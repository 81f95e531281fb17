"""Shell completion: the proposed words, and the scripts of the shells."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT

from fwtui.__main__ import main
from fwtui.commands import completion

# the shell's script reads the words from descriptor 8
ASK = 'exec 8>&1 1>/dev/null; exec "$0" -P -m fwtui'


def completed(line: str, folder: Path) -> set[str]:
    """Return the completions that argcomplete's script gets."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        ["sh", "-c", ASK, sys.executable],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder), **asked},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\013")) - {""}


def test_completion_offers_commands_options_choices_kernels_and_sessions(tmp_path: Path) -> None:
    own = tmp_path / "fwtui" / "sessions"
    own.mkdir(parents=True)
    for name in ("mine-1", "mine-$(touch gone)", "mine-`touch gone`", "mine two"):
        (own / f"{name}.fwt.jsonl").touch()
    (tmp_path / "own.py").write_text('open("ran", "w").close()\n')
    assert completed("fwtui rep", tmp_path) == {"replay", "reproduce"}
    assert completed("fwtui run --tab", tmp_path) == {"--table"}
    assert completed("fwtui run -k na", tmp_path) == {"naive", "naive-vector"}
    assert completed("fwtui run -k scipy,katz", tmp_path) == {"scipy,katz-kider"}
    assert completed("fwtui run -k ./o", tmp_path) == {"./own.py"}
    assert completed("fwtui run -k ./own.py --dtype int1", tmp_path) == {"int16"}
    assert completed("fwtui export lecture-tiles ph", tmp_path) == {"phases"}
    assert "h200-champion" in completed("fwtui replay h200", tmp_path)
    assert completed("fwtui replay mine", tmp_path) == {"mine-1"}, "a shell could carry out the others"
    assert not {"gone", "ran"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_gets_a_script_that_calls_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_ARGCOMPLETE" in script and "fwtui" in script
