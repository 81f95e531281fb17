"""A session as comparisons need it: read in little memory, however long it is."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from fwtui.analysis.reason import COUNTERS_READ
from fwtui.common import gc_pause
from fwtui.sessions.reader import Condition, open_session
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.model import Model
from fwtui.stream.run import Run, sharing
from fwtui.stream.stages import STAGES

_LEFT_OUT = (
    *(Unknown, events.Notice, events.Marker, events.Progress, events.Graph, events.Round, events.Occupancy),
    *(events.Plan, events.Source, events.Answers, events.RankPhases),
)
_GIVEN_AT_START = ("experiment", "phase_names", "ranks")


def load_comparable(path: Path) -> tuple[Model, bool]:
    """The session's model without what no comparison needs, and whether it is complete. Raises Refused if it is no session."""
    model, runs, before = Model(), dict[int, Run](), None
    with open_session(path) as session, gc_pause.paused():
        condition = Condition(session.torn)
        for line in session.lines(condition):
            event = line.event
            if isinstance(event, _LEFT_OUT) or (isinstance(event, events.Stage) and event.name not in STAGES):
                continue
            if isinstance(event, events.Counters):
                event = replace(event, values={key: event.values[key] for key in COUNTERS_READ if key in event.values})
            if isinstance(event, events.RunStarted):
                if model.run is not None:
                    before = runs[model.run.id] = _small(runs[model.run.id], before)
                    model.state = replace(model.state, run=before)
                model.apply(event)
                if model.run is not None and model.run.id == event.run:
                    runs[event.run] = model.run
            elif (run := runs.get(getattr(event, "run", -1))) is not None:
                runs[run.id] = run.after(event)  # without a version of the whole session for each event
            else:
                model.apply(event)
    if model.run is not None:
        begun = model.state.begun.followed_by(*runs.values())
        model.state = replace(model.state, run=runs[model.run.id], begun=begun)
    return model, condition.complete


def _small(run: Run, before: Run | None) -> Run:
    """A run that is over, with only what a comparison reads; what it has in common with the one before is held once."""
    if run.finished is None:
        return (
            run
            if before is None
            else replace(run, **{name: sharing(getattr(run, name), getattr(before, name)) for name in _GIVEN_AT_START})
        )
    last = {stage.name: stage for stage in run.stages}
    return replace(run, stages=tuple(last.values())).slim(None, before)
