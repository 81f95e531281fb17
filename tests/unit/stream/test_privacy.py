"""Privacy: a session does not name the machine's owner unless that was requested."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT

from fwtui.stream import codec, events
from fwtui.stream.privacy import Owner, anonymous, without_names

ALICE = Owner(home="/home/alice", hosts=("box.example.org",), user="alice")
# every process of the program believes that it is called this: site imports sitecustomize in all of them
PRETENDED = """
import os, platform, socket
_real = os.uname()
os.uname = lambda: os.uname_result((_real.sysname, "secret-host-7.example.org", *_real[2:]))
socket.gethostname = platform.node = lambda: "secret-host-7.example.org"
"""
CRASH = """
import sys, types
def _crash(name):
    raise RuntimeError(f"no {name} in {os.path.expanduser('~')} on {socket.gethostname()}")
sys.modules["fwtui.measure.runner"] = types.ModuleType("runner")
sys.modules["fwtui.measure.runner"].__getattr__ = _crash
"""


def recorded(tmp_path: Path, *words: str, crash: bool = False) -> bytes:
    """Return the bytes of a session recorded by `alice-liddell` in her folder on `secret-host-7`."""
    home = tmp_path / "homes" / "alice-liddell"
    patches = home / "patches"
    patches.mkdir(parents=True, exist_ok=True)
    (patches / "sitecustomize.py").write_text(PRETENDED + (CRASH if crash else ""))
    (home / "diary.gr").write_text("p sp 3 2\na 1 2 5\na 2 3 1\n")
    names = dict.fromkeys(("USER", "LOGNAME", "USERNAME", "LNAME"), "alice-liddell")
    environment = {**os.environ, **names, "HOSTNAME": "secret-host-7", "HOME": str(home), "NUMBA_CACHE_DIR": str(tmp_path / "c")}
    path = tmp_path / "s.fwt.jsonl"
    subprocess.run(
        [sys.executable, "-m", "fwtui", "run", "-k", "scipy", "--repeats", "2", "--record", str(path), *words],
        env={**environment, "PYTHONPATH": f"{patches}{os.pathsep}{ROOT}"},
        cwd=home,
        capture_output=True,
        timeout=60,
    )
    return path.read_bytes()


def test_a_session_names_neither_host_nor_user_nor_folder(tmp_path: Path) -> None:
    content = recorded(tmp_path, "--file", str(tmp_path / "homes" / "alice-liddell" / "diary.gr"))
    assert b'"verdict":"verified"' in content and b"diary.gr" in content
    for secret in (b"secret", b"alice", b"homes", b"example.org"):
        assert secret not in content


def test_crash_reports_name_neither_user_nor_host(tmp_path: Path) -> None:
    content = recorded(tmp_path, "-n", "9", crash=True)
    faults = [e for e in map(codec.decode, content.splitlines()) if isinstance(e, events.Fault)]
    assert faults and "Traceback" in faults[0].stderr
    assert b"secret-host-7" not in content and b"alice-liddell" not in content


class TestNames:
    @pytest.mark.parametrize(
        ("said", "kept"),
        [
            ("File /home/alice/fwtui/x.py, line 3", "File …/x.py, line 3"),
            ("/home/alice is full", "~ is full"),
            ("alice@box.example.org: box has no memory", "(user)@(host): (host) has no memory"),
            ("a boxed malice, bobalice and boxes", "a boxed malice, bobalice and boxes"),
        ],
    )
    def test_whole_words_only(self, said: str, kept: str) -> None:
        assert without_names(said, ALICE) == kept

    def test_root_names_nobody(self) -> None:
        said = "add --allow-run-as-root; see /home/me/x"
        assert without_names(said, Owner("/home/me", ("box",), "root")) == "add --allow-run-as-root; see ~/x"

    def test_every_sentence_and_nothing_else(self) -> None:
        said = "/home/alice on box"
        for event, name in (
            (events.Fault(t=1, source="worker", code="died", message=said), "message"),
            (events.Fault(t=1, source="worker", code="died", message="", stderr=said), "stderr"),
            (events.Notice(t=1, text=said), "text"),
            (events.RunDone(t=1, run=1, outcome="failed", message=said), "message"),
            (events.Device(t=1, note=said), "note"),
        ):
            line = anonymous(codec.as_line(event), ALICE)
            assert getattr(line.event, name) == "~ on (host)"
            assert b"alice" not in line.raw and codec.decode(line.raw) == line.event
        stage = codec.as_line(events.Stage(t=1, run=1, name="box"))
        assert anonymous(stage, ALICE) is stage
        harmless = codec.as_line(events.Notice(t=1, text="all is well"))
        assert anonymous(harmless, ALICE) is harmless


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('File "/data/my thesis/lab 7/k.py", line 3, in build', 'File "…/k.py", line 3, in build'),
        ("cannot open /mnt/secret/cuda/libnvvm.so: no such file", "cannot open …/libnvvm.so: no such file"),
        ("PYTHONPATH=/a/b/c.py:/d/e/f.py", "PYTHONPATH=…/c.py:…/f.py"),
        ("see https://example.org/a/b and 3.2 GB/s of n/a", "see https://example.org/a/b and 3.2 GB/s of n/a"),
        ("read/write, and/or a / b", "read/write, and/or a / b"),
    ],
)
def test_folders_are_no_part_of_a_sentence(text: str, kept: str) -> None:
    assert without_names(text) == kept
    assert without_names("n = 5 / x", Owner(home="/", hosts=("n",), user="x")) == "n = 5 / x", "short names are no words"
