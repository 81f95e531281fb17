"""Grading in containers: what podman is told, by a script in its place."""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from course_grading import graded
from own_files import written

from fwtui.common.container import container_of
from fwtui.common.errors import Refused

# podman as far as it is asked here: it keeps what it is told, and runs the command where it is
PODMAN = """#!{python}
import json, os, sys
from pathlib import Path
kept = Path({folder!r})
(kept / f"{{sys.argv[1]}}-{{len(list(kept.iterdir()))}}").write_text(json.dumps(sys.argv[1:]))
if sys.argv[1] == "run":
    words = sys.argv[2:]
    program = words.index("IMAGE") + 2
    os.environ.update(word.split("=", 1) for before, word in zip(words, words[1:]) if before == "--env")
    os.execv(sys.executable, [sys.executable, *words[program:]])
"""


def test_in_a_container_all_that_loads_a_submission_runs_with_its_own_files_alone(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, tools = course / "told", course / "bin"
    for folder in (told, tools):
        folder.mkdir()
    tool = tools / "podman"
    tool.write_text(PODMAN.format(python=sys.executable, folder=str(told)))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    (course / "r.toml").write_text((course / "r.toml").read_text().replace('"naive"', '"scipy"'))
    files = [written(course / name) for name in ("ada", "bob")]
    code, rows, err = graded(course, capsys, *files, more=["--container", "IMAGE"])
    assert code == 0 and [row["verdict"].partition(";")[0] for row in rows] == ["right on all 5 graphs"] * 2, rows
    assert "in containers of its own" in err and "not a sandbox" not in err
    calls = [json.loads(path.read_text()) for path in sorted(told.iterdir(), key=lambda path: int(path.name.split("-")[1]))]
    runs = [call for call in calls if call[0] == "run"]
    modules = [call[call.index("IMAGE") + 1 :] for call in runs]
    assert modules[0] == ["python3", "-P", "-m", "fwtui", "--version"]
    of_one = ["fwtui.measure.submission", "fwtui.measure.trial_target"]
    timed = ["fwtui.measure.submission"] * 2  # one is the rung's
    assert [words[3] for words in modules[1:]] == [*of_one * 2, *timed * 2]
    for call in runs:
        option = dict(pairwise(call))
        assert {"--rm", "--read-only", "--interactive"} <= {*call} and option["--network"] == "none"
        assert option["--memory"] == ("1024g" if call is runs[5] or call is runs[7] else "1g")  # a rung has no limit
    mounts = [[word for before, word in pairwise(call) if before == "--volume"] for call in runs]
    assert all(mount.endswith(":ro") for of_run in mounts for mount in of_run)
    own = [[mount.split(":")[0] for mount in of_run if mount.split(":")[0].endswith(".py")] for of_run in mounts]
    ada, bob = [[str(file)] for file in files]
    assert own == [[], ada, ada, bob, bob, [], ada, [], bob]
    names = {call[call.index("--name") + 1] for call in runs[1:]}
    assert {call[-1] for call in calls if call[0] == "kill"} == names and {"pause", "unpause"} <= {call[0] for call in calls}


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("", "a container takes podman or docker, and neither is on PATH; install one, or leave out --container"),
        ("echo no such image >&2; exit 125", "podman does not run fwtui .* in 'IMAGE': no such image; choose an image .*"),
        ("echo fwtui 0.1", "podman does not run fwtui .* in 'IMAGE': fwtui 0.1; choose an image with that in it"),
    ],
)
def test_a_container_that_cannot_be_is_refused(
    script: str, sentence: str, course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if script:
        (course / "podman").write_text(f"#!/bin/sh\n{script}\n")
        (course / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(course))
    assert graded(course, capsys, written(course / "hw"), more=["--container", "IMAGE"])[:2] == (2, [])
    with pytest.raises(Refused, match=sentence):
        container_of("IMAGE", 1.0, False)
