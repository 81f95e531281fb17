"""The actions of the Learn screen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from fwtui.common.errors import Refused
from fwtui.tui.actions import bound, first_reason, hidden, hidden_look, look, require
from fwtui.tui.frame import bindings

_no_course = require(attrgetter("course_open"), "the course is not open; {key[learn.course]} opens it")
_not_begun = require(attrgetter("course_begun"), "the course is not open; {key[learn.course]} opens it")
_no_matrix = require(attrgetter("matrix_seen"), "the matrix has no room next to the course; {key[learn.course]} shows it")


def _cannot_run(screen: Any) -> str | None:
    if not screen.progress.step.written.prompts:
        try:
            screen.progress.runs(screen.view.has_gpu)
        except Refused as refusal:
            return str(refusal)
    return None


_not_now = first_reason(_no_course, bindings.is_busy, _cannot_run)
_run_here = "run this step's kernel here; without a GPU, in the simulator"
_stepped = partial(bound, unavailable=_no_matrix, shows=True)
_changed = partial(hidden, unavailable=_no_matrix, shows=True)

BINDINGS = (
    bindings.COURSE,
    look(")", "lesson(1)", "Next step", "the next step of the course", _not_begun, "learn.next"),
    hidden_look("(", "lesson(-1)", "Previous step", "the previous step of the course", _not_begun, "learn.before"),
    bound("r", "run_here", "Run here", _run_here, _not_now, "learn.run", deliberate=True),
    _stepped(".", "by('step', 1)", "Step", "the next step", id="learn.step"),
    _changed("comma", "by('step', -1)", "Step back", "the previous step", id="learn.step.back"),
    _stepped(":", "by('k', 1)", "k on", "the next k", id="learn.on"),
    _changed(";", "by('k', -1)", "k back", "the previous k", id="learn.back"),
    _changed("}", "by('round', 1)", "Next round", "the next round", id="learn.round"),
    _changed("{", "by('round', -1)", "Round back", "the previous round", id="learn.round.back"),
    hidden_look("home", "far(-1)", "Beginning", "the first step of the course or plan", id="learn.home", key_display="Home"),
    hidden_look("end", "far(1)", "End", "the last step of the course or plan", id="learn.end", key_display="End"),
    _stepped("space", "walk", "Play", "step through all k; press again to pause", id="learn.play"),
    _stepped("w", "weight", "Weight", "another weight for the marked edge", id="learn.weight"),
    hidden_look("enter", "enter", "Continue", "guess, next step or another weight", id="learn.enter", key_display="Enter"),
    _changed("Z", "size", "Size", "another number of vertices", id="learn.size"),
    _changed("F", "another", "New graph", "another graph of this size", id="learn.another"),
    _changed("k", "kernel(1)", "Kernel", "the next kernel of the ladder", id="learn.kernel"),
    _changed("K", "kernel(-1)", "Previous kernel", "the previous kernel of the ladder", id="learn.kernel.before"),
    bindings.CANCEL,
    replace(bindings.RECORD, show=False),
    replace(bindings.MARK, show=False),
    bindings.PAUSE,
)
