"""Grading for a course: submissions that are right, wrong and hostile."""

import json
import os
import re
from collections.abc import Sequence
from importlib.util import MAGIC_NUMBER, cache_from_source
from itertools import pairwise
from pathlib import Path

import pytest
from data.broken_kernels.planted import PLANTED
from own_files import write_program, written
from test_rubric import SMALL, small

from fwtui import __version__
from fwtui.__main__ import main
from fwtui.campaigns.grading.running import OWN_FOLDERS, SET_ASIDE, Grading, Submission, code_in, floored
from fwtui.common.container import container_of
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import FormLimit, Limits
from fwtui.stream.grades import Judgement
from fwtui_kernels.probes.probe_forms import right_for


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rubric; the user's settings are elsewhere."""
    (tmp_path / "settings.toml").write_text("")
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "settings.toml"))
    (tmp_path / "r.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graded(
    course: Path, capsys: pytest.CaptureFixture[str], *files: Path, jobs: int = 1, more: Sequence[str] = ()
) -> tuple[int, list[dict], str]:
    words = [*map(str, files), "--against", str(course / "r.toml"), "--trust", "--json", "--device", "simulator", *more]
    code = main(["grade", *words, "--jobs", str(jobs)])
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err


def test_right_wrong_and_hanging_submissions_in_the_simulator(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = written(course, "right.py")
    wrong = written(course, "wrong.py", ("distance[k], out", "distance[k] + (k == 3), out"))
    relax = "def relax(distance, k):"
    hanging = written(course, "hanging.py", (relax, f"{relax}\n    while k == 8:\n        pass"))
    (course / "r.toml").write_text(SMALL.replace("seconds = 4", "seconds = 1.5"))
    pages = course / "pages"
    shipped = written(course, "shipped.py", more="from fwtui_kernels import registry\nKERNEL = registry()['scipy']\n")
    once = (RELAXED, f"GIVEN.pop('new') if k == 0 else None\n    {RELAXED}")
    another = on_the_host(
        "load", before="key = given[0].tobytes(); assert key not in GIVEN or len(key) < 99; GIVEN['new'] = GIVEN[key] = 1"
    )
    fresh = written(course / "hw", "fresh.py", once, another, more="GIVEN = {}\n")
    racy = PLANTED["pivot without a first barrier"]
    files = (right, wrong, hanging, shipped, fresh, racy.write(course))
    code, rows, err = graded(course, capsys, *files, jobs=3, more=["--feedback", str(pages)])
    assert code == 1 and [row["passed"] for row in rows] == [True, False, True, True, True, False]
    assert [(row["points"], row["of"]) for row in rows] == [(points, 10) for points in (10, 4, 8, 10, 10, 0)]
    assert rows[0]["verdict"] == "right on all 5 graphs" and rows[0]["share"] is None
    assert rows[1]["verdict"].startswith("right on 2 of 5 graphs; n = 7, seed 1: wrong at (")
    assert rows[2]["verdict"].startswith("right on 4 of 5 graphs; n = 9, seed 3: no end within 1.5 s")
    assert err.count("a process is not a sandbox") == 1 and err.count("no time is taken") == 1
    assert rows[3]["verdict"] == "right on all 5 graphs; it uses the rung scipy"
    assert rows[4]["verdict"] == "right on all 5 graphs", "no graph comes twice where it is run again"
    assert re.fullmatch(racy.simulated, rows[5]["verdict"]), "though the race does no harm to the graphs of the rubric"
    (told,) = (page.read_text() for page in pages.iterdir() if page.name.endswith("wrong.md"))
    assert "\n\n4 of 10 points: right on 2 of 5 graphs; " in told and "\n## random: 4 of 8\n\n- n = 2, seed 1: right\n" in told
    assert len(list(pages.iterdir())) == len(files)


HOSTILE = {
    "it deletes or changes mine.py, which is put back": "Path(__file__).unlink()",
    "it ends its own process, with exit code 0": "import os; os._exit(0)",
    "mine.py:29: RuntimeError: it forks, and a submission is one process: import os; os.fork()": "import os; os.fork()",
    "it prints more than 64 KiB, which is the limit": "while True: print('x' * 99)",
    "it takes more than 1 GiB of memory, which is the limit": "kept = [np.ones(2**22) for _ in range(200)]",
    "its process died of SIGSEGV": "import ctypes; ctypes.string_at(0)",
    "its process told what is no result": r"""
import contextlib, os
for descriptor in range(3, 64):  # the pipe for its results is one of them
    with contextlib.suppress(OSError):
        os.write(descriptor, b'{}\n' * 9)
""",
    "it starts more than 16 processes, which is the limit": (
        "import subprocess, time; [subprocess.Popen(['sleep', '60'], start_new_session=True) for _ in range(40)]; time.sleep(60)"
    ),
}


@pytest.mark.parametrize("sentence", [pytest.param(told, marks=[pytest.mark.slow] * ("SIGSEGV" not in told)) for told in HOSTILE])
def test_what_is_hostile_is_told_in_one_sentence_and_the_next_goes_on(
    sentence: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = written(course / "hw", more=f"{HOSTILE[sentence]}\n")
    text = mine.read_text()
    code, (hostile, right), _ = graded(course, capsys, mine, written(course, "right.py"), jobs=2)
    assert code == 1 and hostile["verdict"] == sentence and hostile["points"] == 0 and mine.read_text() == text
    assert (right["points"], right["verdict"]) == (10, "right on all 5 graphs")


@pytest.mark.parametrize("what", ["bytecode", *(pytest.param(what, marks=pytest.mark.slow) for what in ("judge.py", "new.py"))])
def test_who_changes_the_judge_gets_nothing_and_the_judge_is_put_back(what: str, course: Path) -> None:
    judge = course / "judge" / "judge.py"
    judge.parent.mkdir()
    judge.write_text("right = False\n")
    bytecode = Path(cache_from_source(str(judge)))
    spoilt = bytecode if what == "bytecode" else judge.with_name(what)
    cheat = written(course / "hw", more=f"open({str(spoilt)!r}, 'w').write('right = True\\n')\n")
    of_another_python = f"open({str(bytecode.with_name('judge.cpython-30.pyc'))!r}, 'w').write('')\n"
    submissions = [Submission("cheat.py", cheat), Submission("right.py", written(course, "right.py", more=of_another_python))]
    grading = Grading(small(), DeviceId("simulator"), False, lambda told: None, judge=[judge.parent])
    grading.correctness(submissions, 1)
    fouls = [submission.judgement and submission.judgement.foul for submission in submissions]
    assert fouls == [f"it deletes or changes {spoilt.name}, which is put back", ""]
    assert judge.read_text() == "right = False\n" and not (course / "judge" / "new.py").exists()
    assert (spoilt.with_name(f"new.py{SET_ASIDE}").exists()) == (what == "new.py"), "it may be work of a user"
    if what == "bytecode":
        assert spoilt.read_bytes()[:4] == MAGIC_NUMBER
    assert {"judge.py", "submission.py"} <= {file.name for file in code_in(OWN_FOLDERS)}


# podman as far as it is asked here: it keeps what it is told, and runs the command where it is
PODMAN = """import json, os, sys
from pathlib import Path
kept = Path({folder!r})
(kept / f"{{sys.argv[1]}}-{{len(list(kept.iterdir()))}}").write_text(json.dumps(sys.argv[1:]))
if sys.argv[1] == "run":
    words = sys.argv[2:]
    program = words.index("IMAGE") + 2
    os.environ.update(word.split("=", 1) for before, word in zip(words, words[1:]) if before == "--env")
    os.execv(sys.executable, [sys.executable, *words[program:]])
"""


@pytest.mark.slow
def test_in_a_container_all_that_loads_a_submission_runs_with_its_own_files_alone(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, tool = course / "told", course / "podman"
    told.mkdir()
    write_program(tool, PODMAN.format(folder=str(told)))
    monkeypatch.setenv("PATH", str(course), prepend=os.pathsep)
    (course / "r.toml").write_text(SMALL.replace('"naive"', '"scipy"'))
    files = [written(course / name) for name in ("ada", "bob")]
    code, rows, err = graded(course, capsys, *files, more=["--container", "IMAGE"])
    assert code == 0 and [row["verdict"].partition(";")[0] for row in rows] == ["right on all 5 graphs"] * 2, rows
    assert "in containers of its own" in err and "not a sandbox" not in err
    calls = [json.loads(path.read_text()) for path in sorted(told.iterdir(), key=lambda path: int(path.name.split("-")[1]))]
    runs = [call for call in calls if call[0] == "run"]
    modules = [call[call.index("IMAGE") + 1 :] for call in runs]
    assert modules[0] == ["python3", "-P", "-m", "fwtui", "--version"]
    assert [words[3] for words in modules[1:]] == ["fwtui.measure.submission"] * 6  # timed against a rung, which comes first
    for call in runs:
        option = dict(pairwise(call))
        assert {"--rm", "--read-only", "--interactive"} <= {*call} and option["--network"] == "none"
        assert option["--memory"] == ("1024g" if call is runs[3] or call is runs[5] else "1g")  # a rung has no limit
    mounts = [[word for before, word in pairwise(call) if before == "--volume"] for call in runs]
    assert all(mount.endswith(":ro") for of_run in mounts for mount in of_run)
    own = [[mount.split(":")[0] for mount in of_run if ".py:" in mount] for of_run in mounts]
    ada, bob = [[str(file)] for file in files]
    assert own == [[], ada, bob, [], ada, [], bob]
    assert {call[-1] for call in calls if call[0] == "kill"} == {call[call.index("--name") + 1] for call in runs[1:]}
    assert {"pause", "unpause"} <= {call[0] for call in calls}


def test_a_container_that_cannot_be_is_refused(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(course))
    assert graded(course, capsys, written(course / "hw"), more=["--container", "IMAGE"])[:2] == (2, [])
    with pytest.raises(Refused, match="a container takes podman or docker, and neither is on PATH; install one"):
        container_of("IMAGE", 1.0, False)
    tool = course / "podman"
    help_line = "echo; echo \"Run 'docker run --help' for more information\""
    for script, words in ((f"(echo no such image; {help_line}) >&2; exit 125", "no such image"), ("echo fwtui 0.1", "fwtui 0.1")):
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        with pytest.raises(Refused, match=f"podman does not run fwtui .* in 'IMAGE': {words}; choose an image with that in it"):
            container_of("IMAGE", 1.0, False)
    for image in ("", "--privileged"):
        with pytest.raises(Refused, match="is not the name of an image"):
            container_of(image, 1.0, False)
    tool.write_text(f"#!/bin/sh\necho fwtui {__version__}\n")
    (row,) = graded(course, capsys, written(course, "a:b.py"), more=["--container", "IMAGE"])[1]
    assert "at the colon" in row["verdict"]


def test_folders_are_asked_about_once_and_what_is_no_kernel_is_graded(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [written(course / name) for name in ("ada", "bob")]
    assert main(["grade", *map(str, files), "--against", str(course / "r.toml")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "1 other folder" in said and "--trust" in said
    (course / "notes.txt").write_text("")
    odd, pages = [written(course, os.fsdecode(name)) for name in (b"\xff.py", b"\xfe.py")], course / "pages"
    code, rows, _ = graded(course, capsys, course / "notes.txt", *odd, more=["--feedback", str(pages)])
    assert code == 1 and "is no kernel's file" in rows[0]["verdict"] and "is not UTF-8" in rows[1]["verdict"]
    assert len(list(pages.iterdir())) == 3, "one for each, also where names differ in what no page's name has"
    (deep := course.joinpath(*["x" * 99] * 3)).mkdir(parents=True)
    long = written(deep, os.fsdecode(b"\xff.py"))
    for folder, expected in ((pages, 1), (course / "notes.txt", 2)):
        code, rows, _ = graded(course, capsys, long, more=["--feedback", str(folder)])
        assert (code, len(rows)) == (expected, 1), "grades are told even where no page can be written"
    _, rows, _ = graded(course, capsys, course / "notes.txt", odd[0], more=["--nameless"])
    assert [(row["file"], row["verdict"]) for row in rows] == [("1", ""), ("2", "")], "a table for a class has no names"
    assert main(["grade", str(course / "gone.py"), "--against", str(course / "r.toml")]) == 2


WHOLE = """
def whole(distance):
    for k in range(len(distance)):
        np.minimum(distance, distance[:, k, None] + distance[k], out=distance)
"""
RELAXED = "np.minimum(distance, distance[:, k, None] + distance[k], out=distance)"
IDLE = (RELAXED, "pass")
LARGER_WRONG = (RELAXED, f"{RELAXED} if len(distance) < 10 or k != 5 else None")
BUILT = "    return CpuProgram("
NOT_HERE = "if shape.n > 2: raise __import__('fwtui_kernels.own').own.NoTrial('it takes a GPU')"
EACH_K = "range(n):\n        yield"


def on_the_host(name: str, before: str = "", after: str = "") -> tuple[str, str]:
    """In place of the program one that does more where it loads or unloads."""
    program = 'return CpuProgram(shape, {"relax": relax})'
    changed = f"""class Own(CpuProgram):
        def {name}(self, *given):
            {before}
            found = super().{name}(*given)
            {after}
            return found

    return Own(shape, {{"relax": relax}})"""
    return program, changed


ELSEWHERE = "its distances are right although half of its steps were not launched: they are not computed by them"
FROM_FILE = "found = np.load(path) if path.exists() else (np.save(path, found), found)[1]"
# by name: what is changed in a right kernel, and what is said of it
CHEATS = {
    "computes while it loads": ([IDLE, on_the_host("load", after="whole(given[1][1]); whole(given[1][0])")], ELSEWHERE),
    "computes while it unloads": ([IDLE, on_the_host("unload", before="whole(given[0][0])")], ELSEWHERE),
    "computes all in the first step": ([(RELAXED, "whole(distance)")], ELSEWHERE),
    "computes all in the last step": ([(RELAXED, "whole(distance) if k == len(distance) - 1 else None")], ELSEWHERE),
    "answers again what it answered first": (
        [on_the_host("unload", after="found = FIRST.setdefault(found.shape, found)")],
        r"right on \d of 5 graphs; n = \d, seed \d: wrong at .*",
    ),
    "reads its first answer in a file": (
        [on_the_host("unload", "path = Path(f'answer-{len(given[0][0])}.npy')", FROM_FILE)],
        r"right on \d of 5 graphs; n = \d, seed 2: wrong at .*",
    ),
    "a plan that leaves out relaxations": (
        [(EACH_K, "range(0, n, 2):\n        yield"), ("relax(distance, k):", "relax(distance, k, *_):\n    whole(distance)")],
        r"(the plan is wrong: .*|its distances are right although .*)",
    ),
    "says that it is for a GPU": ([('backend="cpu"', 'backend="cuda"')], r"no function of it can be compiled for a GPU, .*"),
    "says that it cannot be tried where it is wrong": (
        [(RELAXED, f"{RELAXED} if len(distance) < 3 else None"), (BUILT, f"    {NOT_HERE}\n{BUILT}")],
        r"right on 2 of 5 graphs; n = 7, seed 1: it takes a GPU",
    ),
    "refuses what it cannot do, and says that no simulator runs it": (
        [(RELAXED, f"{RELAXED} if len(distance) < 3 else None"), ("compiles=False", "simulates=False, max_n=2, compiles=False")],
        r"right on 2 of 5 graphs; n = 7, seed 1: it takes at most 2 vertices",
    ),
    "is a neighbour's kernel": (
        [(BUILT, f"    exec(NEIGHBOUR.read_text(), vars := {{}})\n    return vars['build'](shape, target)\n{BUILT}")],
        r"right on 0 of 5 graphs; n = 2, seed 1: mine.py:\d+: RuntimeError: it opens right.py, which is another submission's: .*",
    ),
    "another backend than is required": ([], r"its backend is cpu, and the rubric requires cuda"),
    "spoils a neighbour": ([], r"it deletes or changes right.py, which is put back"),
    "is right of the rubric's sizes alone": (
        [(EACH_K, "range(n):\n        if n > 9 and k == 5:\n            continue\n        yield")],
        r"the plan is wrong: .*|right on all 5 graphs here, and not of `fwtui watch`: .*",
    ),
    "is right of the rubric's sizes alone, in its kernel": (
        [LARGER_WRONG],
        r"right on all 5 graphs here, and not of `fwtui watch`: n = \d+.*: wrong at .*",
    ),
}


# the others are by the same means, or found as in tests/unit/measure
TOGETHER = ("computes while it loads", "says that it cannot be tried where it is wrong", "spoils a neighbour")
FOR_GPU = ("says that it is for a GPU", "another backend than is required")
ALIKE = [name for name in CHEATS if name not in (*TOGETHER, *FOR_GPU)]


@pytest.mark.parametrize("names", [TOGETHER, *(pytest.param(later, marks=pytest.mark.slow) for later in (FOR_GPU, ALIKE))])
def test_cheats_pass_nothing_and_are_told(names: Sequence[str], course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if names == FOR_GPU:
        (course / "r.toml").write_text(f'require = "cuda"\n{SMALL}')
    files = []
    for place, name in enumerate(names):
        spoil = "NEIGHBOUR.unlink()\n" if name.startswith("spoils") else ""
        more = f"{WHOLE}FIRST = {{}}\nNEIGHBOUR = Path({str(course / 'right.py')!r})\n{spoil}"
        files.append(written(course / f"hw{place}", "mine.py", *CHEATS[name][0], more=more))
    _, (*cheats, right), err = graded(course, capsys, *files, written(course, "right.py"))
    for name, cheat in zip(names, cheats, strict=True):
        assert re.fullmatch(CHEATS[name][1], cheat["verdict"]) and (cheat["points"] < 10 or not cheat["passed"]), (name, cheat)
    assert names == FOR_GPU or right["points"] == 10, err


FORGED = {
    "the comparison": "import fwtui.engine.verify as verify\nverify._compared = lambda *_: None\n",
    "NumPy": "np.argwhere = lambda *_: np.empty((0, 2), int)\nnp.array_equal = lambda *_: True\n",
    "the pipe's writer": """
from fwtui.common.serve import Parent
def write(self, answer):
    if getattr(answer, "outcome", "right") != "right":
        answer = type(answer)(case=answer.case, outcome="right", sentence="right", n=answer.n)
    send(self, answer)
send, Parent.send = Parent.send, write
""",
    "the trial": """
import __main__ as program
if run := getattr(program, "TrialRun", None):
    run._try = lambda self, kernel, engine, case, tile: program.Finding(case=case.name, outcome="right", sentence="right", n=9)
""",
}


@pytest.mark.parametrize("names", [tuple(FORGED)[:2], pytest.param(tuple(FORGED)[2:], marks=pytest.mark.slow)], ids=len)
def test_who_forges_what_judges_in_its_own_process_is_judged_outside(
    names: Sequence[str], course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [written(course / f"hw{place}", "mine.py", LARGER_WRONG, more=FORGED[name]) for place, name in enumerate(names)]
    _, rows, _ = graded(course, capsys, *files)
    for row in rows:
        told = r"right on all 5 graphs here, and not of `fwtui watch`: n = \d+.*: wrong at .*"
        assert re.fullmatch(told, row["verdict"]) and not row["passed"], row


TIMED = {
    "its clock stands nearly still": "import time\nreal = time.perf_counter\ntime.perf_counter = lambda: real() / 1000\n",
    "it says what it likes": """
import __main__ as program
if computing := getattr(program, "SubmittedKernel", None):
    answer = computing.computed
    def quick(self, ask):
        said, distances = answer(self, ask)
        return type(said)(computed=said.computed, seconds=1e-7), distances
    computing.computed = quick
""",
    "it works where the clock does not look": """
import time
from fwtui.engine.loaded import LoadedKernel
load = LoadedKernel.load
LoadedKernel.load = lambda self, matrix: (time.sleep(0.2), load(self, matrix))[1]
""",
}


SAMPLED = """if len(distance) < 99:
        RELAXED
    elif k == 0:
        from scipy.sparse.csgraph import dijkstra

        rows = np.sort(np.random.default_rng(16807).permutation(len(distance))[:16])
        distance[rows] = dijkstra(np.where(distance < 1e4, distance, 0), indices=rows)"""


@pytest.mark.parametrize("names", [tuple(TIMED)[1:2], pytest.param(tuple(TIMED)[::2], marks=pytest.mark.slow)], ids=len)
def test_the_clock_of_the_judge_counts(names: Sequence[str], course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (course / "r.toml").write_text(SMALL.replace('"naive"', '"scipy"').replace("n = 64", "n = 300"))
    files = [written(course / f"hw{place}", more=TIMED.get(name, "")) for place, name in enumerate(("honest", *names))]
    sampled = (RELAXED, SAMPLED.replace("RELAXED", RELAXED))
    _, (*rows, some), err = graded(course, capsys, *files, written(course / "some", "mine.py", sampled))
    told = "right on all 5 graphs; not timed: n = 300: 16 rows equal Dijkstra's, but the checksum differs from that of scipy"
    assert (some["verdict"], some["time_points"]) == (told, 0), "who computes only rows that a sample compares"
    for row in rows:
        assert row["seconds"] is not None and row["own_seconds"] <= row["seconds"], (row, err)
    assert [row["seconds"] > 4 * row["own_seconds"] for row in rows] == [False, *[True] * len(names)], rows


def test_what_is_faster_than_the_limit_of_the_device_is_refused() -> None:
    form = right_for("cpu", "float32", True)[0].key
    told = Limits(t=0.0, backend="cpu", forms=(FormLimit(form=form, relaxations_per_second=2e9),), complete=True)
    timing = small().timing
    assert timing is not None
    least = timing.n**3 / 2e9
    fine, fast = (Judgement(seconds=seconds, rung_seconds=1.0, backend="cpu") for seconds in (1.01 * least, 0.5 * least))
    assert floored(fine, timing, told) == fine and floored(fast, timing, None) == fast
    refused = floored(fast, timing, told)
    assert refused.seconds is None and "is less than n = 64 takes at the limit of this device" in refused.untimed
