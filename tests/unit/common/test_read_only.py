"""A process that may not change anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TRY = """
import json, os, pathlib, shutil, socket, subprocess, sys, threading
from fwtui.common.read_only import forbid_changes
there = pathlib.Path("there")
tries = {
    "write": lambda: open("new", "w"), "append": lambda: open(there, "ab"), "update": lambda: open(there, "r+"),
    "descriptor": lambda: os.open("new", os.O_WRONLY | os.O_CREAT), "touch": lambda: pathlib.Path("new").touch(),
    "remove": there.unlink, "rename": lambda: there.rename("new"), "folder": lambda: os.mkdir("new"),
    "link": lambda: os.symlink("there", "new"), "mode": lambda: there.chmod(0), "copy": lambda: shutil.copy(there, "new"),
    "program": lambda: subprocess.run(["true"]), "shell": lambda: os.system("true"), "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]), "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)), "signal": lambda: os.kill(os.getppid(), 0),
}
forbid_changes()
done = {}
for name, act in tries.items():
    try:
        done[name] = repr(act())
    except PermissionError as error:
        done[name] = error.strerror
import decimal  # what is not loaded yet still can be
threading.Thread(target=print).start()
print(json.dumps([there.read_text(), done]))
"""


def test_it_reads_and_is_refused_whatever_would_write_or_start_something(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("as it was")
    path = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, cwd=tmp_path, env=path, timeout=30)
    read, told = json.loads(done.stdout.splitlines()[-1])
    assert read == "as it was" and len(told) > 15
    assert {name: said for name, said in told.items() if said != "this program is read-only"} == {}
    assert [file.name for file in tmp_path.iterdir()] == ["there"] and (tmp_path / "there").read_text() == "as it was"
