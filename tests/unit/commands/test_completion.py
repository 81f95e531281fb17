"""Shell completion: the proposed words, and the scripts of the shells."""

from pathlib import Path

import pytest
from processes import run_python

from fwtui.__main__ import main
from fwtui.commands import completion

# a fork for each line, as the completion of one ends its process; the shell's script reads the words from descriptor 8
EACH_LINE = """
import json, os, sys
import argcomplete, argparse, msgspec
for line in sys.argv[1:]:
    print(flush=True)
    if os.fork() == 0:
        os.environ |= {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
        os.dup2(1, 8)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv[1:] = []
        from fwtui.__main__ import main
        main()
        os._exit(1)
    assert os.wait()[1] == 0, line
"""


def completed(folder: Path, *lines: str) -> list[set[str]]:
    """Return the completions of each line that argcomplete's script gets."""
    told = run_python(EACH_LINE, *lines, cwd=folder, XDG_DATA_HOME=str(folder))
    return [set(words.split("\013")) - {""} for words in told.split("\n")[1:]]


def test_completion_offers_commands_options_choices_kernels_and_sessions(tmp_path: Path) -> None:
    own = tmp_path / "fwtui" / "sessions"
    own.mkdir(parents=True)
    for name in ("mine-1", "mine-$(touch gone)", "mine-`touch gone`", "mine two"):
        (own / f"{name}.fwt.jsonl").touch()
    (tmp_path / "own.py").write_text('open("ran", "w").close()\n')
    expected = {
        "rep": {"replay", "reproduce"},
        "run --tab": {"--table"},
        "run -k na": {"naive", "naive-vector"},
        "run -k scipy,katz": {"scipy,katz-kider"},
        "run -k ./o": {"./own.py"},
        "run -k ./own.py --dtype int1": {"int16"},
        "export lecture-tiles ph": {"phases"},
        "replay mine": {"mine-1"},  # a shell could carry out the others
    }
    *found, shipped = completed(tmp_path, *(f"fwtui {line}" for line in (*expected, "replay h200")))
    assert dict(zip(expected, found, strict=True)) == expected and "h200-champion" in shipped
    assert not {"gone", "ran"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_gets_a_script_that_calls_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_ARGCOMPLETE" in script and "fwtui" in script
