"""Progress and error messages on stderr; stdout carries only results."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from fwtui.analysis import sparsity
from fwtui.analysis.estimate import estimated_seconds
from fwtui.common import units
from fwtui.common.errors import NO_THREAD, THREAD_ERROR
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.streams import report
from fwtui.stream import events
from fwtui.stream.codec import Line
from fwtui.stream.model import Model
from fwtui.stream.stages import doing

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):.* (?=[\w.]+(?:Error|Exception)\b)"
)  # the recording contains the traceback


class StderrReporter:
    """Reports errors once each and, on a terminal, progress."""

    def __init__(self, model: Model | None = None, show: Callable[[str, float | None], object] | None = None) -> None:
        """Report progress; if a model is given, also the relaxations that a sparse plan skips. Events reach the model last.

        `show` receives the progress as text and as a share (0 to 1, or None); by default a terminal shows the text.
        """
        self._model = model
        self._show = show or (lambda text, share: show_progress(text))
        self._fault = ""
        self._file, self._graph = "", ""  # the graph file of the run, and the last sentence about one

    def __call__(self, line: Line) -> None:
        match line.event:
            case events.Notice(level="warning" | "error", text=text):
                print_message(text)
            case events.Fault(code=code, message=message, stderr=stderr):
                self._fault = message
                print_message(message)
                # only if a process died: other commands report their errors themselves
                if code == "died" and (last := _TRACEBACK.sub("", stderr).strip()) and last not in message:
                    print_message(last.replace(f"RuntimeError: {THREAD_ERROR}", NO_THREAD))
            case events.RunDone(outcome="refused" | "failed", message=message) if message != self._fault:
                print_message(message)
            case events.RunStarted(experiment=experiment):
                self._fault, self._file = "", experiment.file
            case events.Graph(name=name, note=note) if self._file and self._graph != (sentence := f"{name}: {note}"):
                self._graph = sentence
                print_message(sentence)
            case events.Planned(run=number) if self._model is not None and number in self._model.runs:
                run = self._model.runs[number].after(line.event)
                if left_out := sparsity.describe_order(run, None if run.simulated else estimated_seconds(self._model, run)):
                    print_message(f"run {number}: {', '.join(left_out)}")
            case events.RunDone():
                self._show("", None)
            case events.Stage(name=name, seconds=None):
                self._show(doing(name), None)
            case events.Progress(stage=stage, done=done, left=left):
                self._show(
                    f"{doing(stage)} {100 * done:3.0f} %" + (f", {units.duration(left)} left" if left is not None else ""), done
                )


def print_message(text: str) -> None:
    """Print a sentence to stderr."""
    show_progress("")
    report(text)


def session_exit_code(path: Path, complete: bool) -> int:
    """Return the exit code of a command that has read a whole session, and report an incomplete one."""
    if complete:
        return OK
    print_message(f"{path.name} is incomplete; `fwtui check` lists the missing parts")
    return WRONG


def show_progress(text: str) -> None:
    """Show progress on a line of the terminal that the next output replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def drawing_progress() -> Callable[[float], None]:
    """Return a callback that takes the drawn share (0 to 1) of a replay and prints it as progress."""
    on_terminal = sys.stderr.isatty()  # before Textual replaces sys.stderr by a terminal

    def show(share: float) -> None:
        if on_terminal:
            show_progress(f"drawing the replay {100 * share:3.0f} %" if share < 1 else "")

    return show
