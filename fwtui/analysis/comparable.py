"""A session as comparisons need it: read in little memory, however long it is."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from fwtui.analysis.reason import COUNTERS_READ
from fwtui.common import gc_pause
from fwtui.sessions.reader import open_session
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import STAGES

_LEFT_OUT = (
    *(Unknown, events.Notice, events.Marker, events.Progress, events.Graph, events.Round, events.Occupancy),
    *(events.Ordered, events.Plan, events.Source, events.Answers, events.RankPhases),
)


def load_comparable(path: Path) -> tuple[Model, bool]:
    """The session's model without what no comparison needs, and whether it is complete. Raises Refused if it is no session."""
    model, last = Model(), None
    with open_session(path) as session, gc_pause.paused():
        for line in session.lines():
            event = line.event
            if isinstance(event, _LEFT_OUT) or (isinstance(event, events.Stage) and event.name not in STAGES):
                continue
            if isinstance(event, events.Counters):
                event = replace(event, values={key: event.values[key] for key in COUNTERS_READ if key in event.values})
            before = model.run
            model.apply(event)
            if before is not None and model.run is not before and before.finished is not None and before.id != model.current:
                last = model.runs[before.id] = _small(before, last)
    return model, session.condition.complete


def _small(run: Run, before: Run | None) -> Run:
    """A run that is over, with only what a comparison reads."""
    stages = {stage.name: stage for stage in run.stages}  # the last of each name
    return replace(run, stages=tuple(stages.values())).brief(None, before)
