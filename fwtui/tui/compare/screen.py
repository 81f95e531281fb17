"""Runs of this session and of others against a baseline: verdicts, phases, passes, and a race."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import DataTable

from fwtui.analysis.columns import COMPARED_HEAD, compared
from fwtui.analysis.compare import Comparison, Entrant, compare
from fwtui.analysis.race import course
from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.sessions.library import load_model, paths, resolve
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.charts.chart import Chart
from fwtui.tui.compare.detail import Deltas, Pair, Track, Verdict, passes
from fwtui.tui.compare.race_clock import RaceClock
from fwtui.tui.compare.table import MOST_ROWS, CompareTable, Line
from fwtui.tui.frame import bindings, palette
from fwtui.tui.frame.dialogs import SessionsScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.recording import named
from fwtui.tui.frame.saving import Table
from fwtui.tui.frame.view import View

MOST_SESSIONS = 8  # beside this one


class Brought(Message):
    """Another session's runs, or why there are none."""

    def __init__(self, name: str, outcome: Model | Exception):
        super().__init__()
        self.name, self.outcome = name, outcome


class CompareScreen(Frame):
    DEFAULT_CSS = """
    CompareScreen #body { height: 1fr; padding: 0 1; border-bottom: solid $border-blurred; }
    CompareScreen CompareTable { height: auto; min-height: 3; max-height: 35%; }
    CompareScreen Verdict { margin-top: 1; }
    CompareScreen #parts { height: 1fr; min-height: 3; margin-top: 1; }
    CompareScreen #deltas { width: 1fr; scrollbar-size-vertical: 1; }
    CompareScreen Chart { width: 1fr; margin-left: 2; }
    CompareScreen Track { height: auto; margin-top: 1; }
    CompareScreen.-narrow Chart { display: none; margin-left: 0; }
    CompareScreen.-narrow.-curves Chart { display: block; }
    CompareScreen.-narrow.-curves #deltas { display: none; }
    CompareScreen.-short #body, CompareScreen.-flat #body { border-bottom: none; }
    CompareScreen.-short Verdict, CompareScreen.-flat Verdict { margin-top: 0; }
    CompareScreen.-short #parts, CompareScreen.-flat #parts { margin-top: 0; }
    CompareScreen.-short Track, CompareScreen.-flat Track { margin-top: 0; display: none; }
    CompareScreen.-racing Track { display: block; }
    CompareScreen.-flat.-racing #parts { display: none; }
    """
    AUTO_FOCUS = "CompareTable"
    PLACE = "compare"
    BINDINGS: ClassVar = [
        Binding("b", "pin", "Baseline", id="compare.baseline", tooltip="the marked run is what all others are compared with"),
        Binding("o", "bring", "Open", id="compare.open", tooltip="runs of another session beside those of this one"),
        Binding("g", "race", "Race", id="compare.race", tooltip="the marked run and the baseline race; again: pause, go on"),
        Binding("t", "align", "Align", id="compare.align", tooltip="race by time, or by round"),
        Binding("v", "view", "View", id="compare.view", tooltip="phases or passes, where there is no room for both"),
        bindings.CURSOR,
        *bindings.SHARED,
    ]
    MOVES = ("Table of runs", (*bindings.MOVES[:2], Binding("enter", "", "Mark", tooltip="compare this run with the baseline")))
    WORDS = (
        ("because", "the 95 % interval of the change of time; unverified, throttled or unequal work is never faster or slower"),
        ("race by time", "all runs at the same moment after their start, slowed down; from the rounds of the phase pass"),
        ("race by round", "all runs at the same point of the work: how long each one took to come there"),
    )

    def __init__(self, view: View):
        super().__init__(view)
        self._others: dict[str, Model] = {}  # other sessions by name
        self._pinned = ""  # label of the baseline; empty: the first run that is verified
        self._marked = ""  # label of the run that is looked at
        self._clock = RaceClock()
        self._pair: Pair | None = None
        self._kept: dict[tuple[int, int], tuple[Run, Run, int, Comparison]] = {}

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield CompareTable()
            yield Verdict("")
            with Horizontal(id="parts"):
                with VerticalScroll(id="deltas", can_focus=False):
                    yield Deltas(None)
                yield Chart()
            yield Track("")

    def panel(self) -> Widget:
        return self.query_one("#deltas")

    def state(self) -> object:
        return (tuple(self._others), self._pinned, self._marked, self._clock.state)

    def table(self) -> Table:
        """The verdicts with their reasons."""
        entrants = self.entrants
        baseline = self.baseline(entrants)
        told = [(e, self._found(e, baseline)) for e in entrants if baseline is not None and e.label != baseline.label]
        rows = [compared(baseline, None)] if baseline is not None else []
        return [COMPARED_HEAD, *rows, *(compared(*pair) for pair in told)] if rows else ()

    @property
    def entrants(self) -> list[Entrant]:
        """Every run that has ended, the newest of this session first, then those of the others."""
        ours = [Entrant(self.model, run) for run in reversed([*self.model.runs.values()]) if run.state != "running"]
        return ours + [
            Entrant(m, run, name) for name, m in self._others.items() for run in m.runs.values() if run.state != "running"
        ]

    def baseline(self, entrants: Sequence[Entrant]) -> Entrant | None:
        """The pinned one, else the run that is the baseline elsewhere, else the first verified one of the newest run's size."""
        wanted = self._pinned or f"run {self.view.baseline}"
        pinned = next((e for e in entrants if e.label == wanted), None)
        ours = [e for e in reversed(entrants) if not e.session] + [e for e in entrants if e.session]
        good = [e for e in ours if e.run.verified and e.run.seconds]
        same = [e for e in good if e.run.n == entrants[0].run.n]
        return pinned or next(iter(same if len(same) > 1 else good), None)

    def marked(self, entrants: Sequence[Entrant], baseline: Entrant | None) -> Entrant | None:
        """The run under the cursor, unless that is the baseline itself."""
        label = self.query_one(CompareTable).marked
        return next((e for e in entrants if e.label == label and (baseline is None or label != baseline.label)), None)

    def update(self, forced: bool = False) -> None:
        self._clock.run()
        super().update(forced)

    def show(self) -> None:
        entrants = self.entrants
        baseline = self.baseline(entrants)
        table = self.query_one(CompareTable)
        table.show(self._lines(entrants, baseline), self.app.size.width - 2)
        self._marked = table.marked or ""
        entrant = self.marked(entrants, baseline)
        pair = Pair(entrant, baseline, self._found(entrant, baseline)) if entrant is not None and baseline is not None else None
        self._pair = pair
        self.query_one(Verdict).show(pair or self._advice(entrants, baseline))
        self.query_one(Deltas).show(pair)
        self.query_one(Chart).show(passes(pair))
        race, align = self.key_of("compare.race"), self.key_of("compare.align")
        shown = self._clock.race(pair, f"{race}, {align}") or f"{race}: a race of the marked run and the baseline"
        self.query_one(Track).show(shown)

    def _advice(self, entrants: Sequence[Entrant], baseline: Entrant | None) -> str:
        other, pin = self.key_of("compare.open"), self.key_of("compare.baseline")
        if not entrants:
            return f"no run has ended yet; run two experiments, or press {other} for those of another session"
        if baseline is None:
            return "no verified run to compare with yet"
        if len(entrants) == 1:
            return f"{baseline.label} is the baseline; run another experiment, or press {other} for another session's runs"
        return f"{baseline.label} is the baseline; mark another run to see where it differs, {pin} makes it the baseline"

    def _lines(self, entrants: Sequence[Entrant], baseline: Entrant | None) -> list[Line]:
        """Of too many runs the newest, but the other sessions' as well, and always the baseline."""
        ours, others = [e for e in entrants if not e.session], [e for e in entrants if e.session][: MOST_ROWS // 2]
        told = [*ours[: MOST_ROWS - len(others) - 1], *others]
        if baseline is None:
            return [Line(e, None) for e in told]
        told += [baseline] * all(e.label != baseline.label for e in told)
        return [Line(e, self._found(e, baseline)) if e.label != baseline.label else Line(e, None, True) for e in told]

    def _found(self, entrant: Entrant, baseline: Entrant) -> Comparison:
        """The comparison, made again only when one of the two runs changed, or others that may repeat them came."""
        key = (id(entrant.run), id(baseline.run))
        kept = self._kept.get(key)
        others = len(entrant.model.runs) + len(baseline.model.runs)
        if kept is None or kept[0] is not entrant.run or kept[1] is not baseline.run or kept[2] != others:
            if len(self._kept) > 1000:
                self._kept.clear()
            kept = (entrant.run, baseline.run, others, compare(entrant, baseline))
            self._kept[key] = kept
        return kept[3]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        label = self.query_one(CompareTable).marked or ""  # a key in an empty table is told as well, without a row
        if label != self._marked:
            self._marked = label
            self._clock.end()
            self.remove_class("-racing")
            self.update(True)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()

    def action_pin(self) -> None:
        label = self.query_one(CompareTable).marked
        entrant = next((e for e in self.entrants if e.label == label), None)
        if entrant is None:
            return
        self._pinned = entrant.label
        self.view.baseline = entrant.run.id if not entrant.session else None
        self.say(f"{entrant.label} is the baseline")
        self.update(True)

    def action_race(self) -> None:
        self._clock.press()
        self.add_class("-racing")
        self.update()

    def action_align(self) -> None:
        self._clock.by_round = not self._clock.by_round
        self.update()

    def action_view(self) -> None:
        self.toggle_class("-curves")

    def action_bring(self) -> None:
        def chosen(name: str | None) -> None:
            if name:
                self.bring(name)

        self.app.push_screen(SessionsScreen([named(path) for path in paths()]), chosen)

    def bring(self, name: str) -> None:
        """Read another session, by its name or path, in the background."""
        self.say(f"opening {clean(Path(name).name)}")
        # a daemon thread: leaving must not wait for a big file
        Thread(target=self._bring, args=(name,), name="reader", daemon=True).start()

    def _bring(self, name: str) -> None:
        told = clean(Path(name).name)
        try:
            path = resolve(name)
            told = named(path)
            outcome: Model | Exception = load_model(path)[0]
        except Exception as error:
            outcome = error
        with contextlib.suppress(RuntimeError):
            self.post_message(Brought(told, outcome))

    def on_brought(self, event: Brought) -> None:
        event.stop()
        if isinstance(event.outcome, Exception):
            sentence = (
                str(event.outcome) if isinstance(event.outcome, Refused) else f"{event.name} could not be read: {event.outcome}"
            )
            self.say(clean(sentence), "error")
        elif not event.outcome.runs:
            self.say(f"{event.name} holds no runs", "warning")
        elif len(self._others) >= MOST_SESSIONS and event.name not in self._others:
            self.say(
                f"{MOST_SESSIONS} sessions are open beside this one, the limit; leave and come back to begin anew", "warning"
            )
        else:
            self._others[event.name] = event.outcome
            runs = len(event.outcome.runs)
            self.say(f"{runs} run{'s' * (runs != 1)} of {event.name}")

    def commands(self) -> Iterator[palette.Command]:
        yield from super().commands()
        for path in paths():
            yield palette.Command(f"Compare with: {named(path)}", partial(self.bring, str(path)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "pin":
                return bool(self.entrants)
            case "race":
                pair = self._pair
                return pair is not None and all(course(e.run) is not None for e in (pair.entrant, pair.baseline))
            case "align":
                return self._clock.begun and self._pair is not None
            case "view":
                return self.narrow
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        match action:
            case "pin":
                return "no run has ended yet"
            case "race" | "align" if self._pair is None:
                return "a race needs a baseline and another run that is marked"
            case "race":
                return "only runs that have a time can race"
            case "align":
                return f"no race has begun; {self.key_of('compare.race')} starts it"
            case "view":
                return "phases and passes are both shown"
        return super().why_not(action)
