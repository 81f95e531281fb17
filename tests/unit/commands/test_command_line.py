"""`fwtui` as a process: its output and its exit codes."""

import contextlib
import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from builders import run_started
from processes import Terminal, environment, fwtui

from fwtui import __version__, commands
from fwtui.__main__ import main
from fwtui.analysis import columns
from fwtui.commands import run as run_command
from fwtui.commands.support.stderr_reporter import StderrReporter
from fwtui.common.errors import NO_THREAD
from fwtui.common.signals import restore_handlers
from fwtui.live.session import Live
from fwtui.machine import hardware
from fwtui.stream import events
from fwtui.stream.codec import as_line
from fwtui_kernels import registry

NO_GPU_HERE = not hardware.driver_present()
QUICK = ("--repeats", "2", "--telemetry-hz", "0")


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start the program as a process."""
    command, pipe = [sys.executable, "-P", "-m", "fwtui", *words], subprocess.PIPE
    shown = {**environment(folder), "PYTHONUNBUFFERED": "1"}  # at once
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=shown, cwd=folder)


def results(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


Here = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    """Return a function that runs the command in this process, without a worker."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        with restore_handlers():
            try:
                code = main([*words])
            except SystemExit as ended:
                code = int(ended.code or 0)
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


@pytest.mark.skipif(not NO_GPU_HERE, reason="there is a GPU here")
def test_a_cuda_kernel_without_a_gpu_is_exit_code_3(here: Here) -> None:
    for words in (("-n", "100"), ("--file", "graph.gr"), ("-n", "9", "--device", "0")):
        done = here("run", "-k", "katz-kider", *words)
        assert done.returncode == 3 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and "GPU" in done.stderr
        assert "simulator" in done.stderr, "the way out"


def test_what_is_recorded_replays_to_the_same_results(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "kept.fwt.jsonl"
    words = ("-k", "serial,tiled-cpu", "-n", "64,65", "--tile", "16", *QUICK, "--title", "two kernels")
    ran = fwtui(tmp_path, "run", *words, "--json", "--record", str(path))
    assert ran.returncode == 0 and ran.stderr == f"fwtui: recording to {path}\n", "a pipe gets the results, and they alone"
    told = results(ran)
    assert [(r["kernel"], r["n"]) for r in told] == [("serial", 64), ("serial", 65), ("tiled-cpu", 64), ("tiled-cpu", 65)]
    for r in told:
        assert r["verified"] is True and r["state"] == "done" and r["backend"] == "cpu"
        assert r["seconds"] > 0 and r["count"] == 2 and r["indicative"] is True
        assert r["relaxations_per_second"] == pytest.approx(r["n"] ** 3 / r["seconds"])
        assert r["model_bytes_per_second"] > 0 and set(r["phases"]) == set(registry()[r["kernel"]].phases)
    assert told[0]["checksum"] == told[2]["checksum"] != told[1]["checksum"] == told[3]["checksum"]
    checked = here("check", str(path))
    assert checked.returncode == 0 and "two kernels" in checked.stdout and "4 runs" in checked.stdout
    replayed = here("replay", "--json", str(path))
    assert replayed.returncode == 0 and results(replayed) == results(ran)
    assert len(here("replay", str(path)).stdout.partition("\n\n")[0].splitlines()) == 5
    again = here("run", *words, "--record", str(path))
    assert again.returncode == 2 and "exists already" in again.stderr
    path.write_bytes(path.read_bytes()[:-40])
    cut = here("check", str(path))
    assert cut.returncode == 1 and "Incomplete" in cut.stdout
    replayed = here("replay", "--json", str(path))
    assert replayed.returncode == 1 and results(replayed) == results(ran) and "incomplete" in replayed.stderr


def test_help_lists_the_commands_with_their_places_and_purpose(here: Here) -> None:
    told = here("--help").stdout
    assert "exit codes: 0 ok, 1 wrong result" in told and all(f"\n  {name} " in told for name in ("run", "replay", "doctor"))
    places = [told.index(f"\n{group}:\n") for group in commands.GROUPS]
    assert places == sorted(places)
    assert "\n  graph " not in told and f"{len(commands.RARE)} more: fwtui --help --all" in told
    about = here("run", "--help").stdout
    assert "--threads" in about and "several, separated by commas" in about
    assert here("help", "run").stdout == about
    assert here("--version").stdout.splitlines()[0] == f"fwtui {__version__}"
    files = {path.stem for path in Path(commands.__file__).parent.glob("[!_]*.py")}
    assert set(commands.COMMANDS) == files and len(commands.COMMANDS) == len(files) and files > commands.RARE
    for name in files:
        module = importlib.import_module(f"fwtui.commands.{name}")
        assert commands.about(name) and callable(module.add_arguments) and callable(module.execute)


def test_windows_is_refused_in_a_sentence() -> None:
    code = "import sys; sys.platform = 'win32'; import fwtui.__main__"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("fwtui: Windows") and "WSL" in done.stderr


class Scripted(Live):
    """A live session whose worker sends one scripted list of events per run."""

    def __init__(self, script: list[list[events.Event]]) -> None:
        super().__init__(telemetry_hz=0)
        self.script, self.turn = script, 0

    def start(self, experiment: Any) -> int:
        for event in self.script[self.turn]:
            self.emit(event)
        self.turn += 1
        return self.turn


def told_by(run: int, verdict: str = "verified", outcome: str = "done") -> list[events.Event]:
    from fwtui.experiment.experiment import Experiment

    return [
        run_started(Experiment(kernel="serial", n=8), run),
        events.Verdict(t=2, run=run, verdict=verdict, how="as the test says"),
        events.RunDone(t=3, run=run, outcome=outcome, median=0.5, count=2),
    ]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[list[events.Event]]], None]:
    """Script the events that `fwtui run` receives."""
    return lambda script: monkeypatch.setattr(run_command, "live_session", lambda given: Scripted(script))


DIED = [events.Fault(t=4, source="worker", code="died", message="the worker died", run=2)]


@pytest.mark.parametrize(
    ("script", "code", "lines"),
    [
        ([told_by(1), told_by(2)], 0, 2),
        ([told_by(1, "wrong"), told_by(2)], 1, 2),
        ([told_by(1, "out of range"), told_by(2)], 1, 2),
        ([told_by(1, "unverified"), told_by(2, "negative cycle")], 0, 2),
        ([told_by(1, outcome="failed"), told_by(2)], 4, 2),
        ([told_by(1), told_by(2, outcome="refused")], 2, 2),
        ([told_by(1), DIED], 4, 1),
    ],
)
def test_exit_codes_follow_the_outcomes_of_runs(
    scripted: Callable[..., None], capsys: pytest.CaptureFixture[str], script: Any, code: int, lines: int
) -> None:
    scripted(script)
    before = signal.getsignal(signal.SIGINT)
    assert main(["run", "--json", "-k", "serial", "-n", "8,9"]) == code
    assert signal.getsignal(signal.SIGINT) is before, "a caller's own"
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["run"] for r in told] == [1, 2][:lines], "a run that never began has no result"
    words = {"verified": True, "wrong": False, "out of range": False}
    assert [r["verified"] for r in told] == [words.get(r["verdict"]) for r in told]


def test_a_program_may_import_it_and_run_a_command_in_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    before = signal.getsignal(signal.SIGINT)
    importlib.reload(sys.modules["fwtui.__main__"])
    assert signal.getsignal(signal.SIGINT) is before
    with ThreadPoolExecutor() as other:
        assert other.submit(main, ["kernels"]).result() == 0


def test_the_progress_line_is_cleared_when_a_run_ends() -> None:
    terminal, narrate = Terminal(), StderrReporter()
    for event in (
        events.Stage(t=1, run=1, name="compile"),
        events.Progress(t=2, run=1, stage="clean", done=0.5, left=3.0),
        events.RunDone(t=3, run=1, outcome="done"),
        events.Progress(t=4, run=2, stage="clean", done=0.25),
        events.RunDone(t=5, run=2, outcome="refused", message="too large\x1b[2J"),
    ):
        with contextlib.redirect_stderr(terminal):
            narrate(as_line(event))
    line = "\r\x1b[K"
    assert terminal.getvalue() == (
        f"{line}compiling{line}timed repetitions  50 %, 3.00 s left{line}{line}timed repetitions  25 %{line}fwtui: too large[2J\n"
    )


def test_every_option_of_a_kernel_is_explained_once_in_a_group_of_its_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    rest = words.partition("options:")[2]
    for kernel in registry().values():
        for option in kernel.options:
            assert rest.count(f"--{option.name} COUNT") == 1
    assert "options of naive: --pitch COUNT 1: rows" in rest
    assert rest.count("threads per block") == 1 and "options of 11 kernels: naive, two-matrices" in rest
    assert "results per thread in the base case; its block has tile^2 / results threads (1, 4, 16; default: 4)" in rest


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "--table", "h200-ladder-n4096"],
        ["compare", "h200-n4096-naive-blocked", "h200-ladder-n4096"],
        *(["list"], ["kernels"], ["config"], ["reproduce", "sing", "--from", "h200-reproduce-sing"]),
    ],
    ids=lambda words: words[0],
)
def test_tables_keep_to_the_width_that_is_there(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(words) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("file: ")]
    assert lines and not [line for line in lines if len(line) > 60]


def test_a_table_without_a_terminal_has_every_column_and_a_line_for_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--table", "h200-n4096-naive-blocked"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert [title for title in columns.PRINTED_HEAD if title not in head] == ["reason"]
    assert [row[:6] for row in rows[:6]] == ["  1  n", "  2  k", "", "run 1:", "", "KATZ-K"]


@pytest.mark.parametrize("words", [["list"], ["doctor"]])
def test_rows_are_also_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    table = capsys.readouterr().out.splitlines()
    assert main([*words, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 0 < len(told) <= len(table) and all(isinstance(row, dict) for row in told)


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run a function when the module of the command is imported."""
    return lambda happens: monkeypatch.setattr("fwtui.__main__.import_module", lambda name: happens())


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_at_the_start_has_a_code(signum: int, imported: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal arrives while a command is imported, also if an import hides the exception."""

    def ended(code: int) -> None:
        raise SystemExit(code)

    imported(lambda: signal.raise_signal(signum))
    monkeypatch.setattr("fwtui.common.signals.os._exit", ended)
    monkeypatch.setattr(sys, "argv", ["fwtui", "list"])
    with restore_handlers(), pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 128 + signum


def test_an_interrupt_that_an_import_turned_into_another_error_is_still_one(imported: Callable[..., None]) -> None:
    def broken() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    imported(broken)
    assert main(["list"]) == 130


def test_a_fault_is_reported_once_with_at_most_the_end_of_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    where = 'Traceback (most recent call last):   File "…/x.py", line 3, in f '
    for code, message, error, more in (
        ("died", "the worker died (exit code 1)", "ValueError: no tiles", "fwtui: ValueError: no tiles\n"),
        ("died", "the worker died (exit code 1)", "RuntimeError: can't start new thread", f"fwtui: {NO_THREAD}\n"),
        ("cuda", "the GPU reported an error: no tiles", "ValueError: no tiles", ""),
    ):
        narrate = StderrReporter()
        narrate(as_line(events.Fault(t=1, source="worker", code=code, run=1, message=message, stderr=f"{where}{error} ")))
        narrate(as_line(events.RunDone(t=2, run=1, outcome="failed", message=message)))
        assert capsys.readouterr().err == f"fwtui: {message}\n{more}"
