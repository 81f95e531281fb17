"""A document's experiments, run one after the other by a screen that has other things to do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.claim_recorder import record
from fwtui.campaigns.reproduce.performer import Performer
from fwtui.campaigns.reproduce.preset import BEGINS, Scale
from fwtui.campaigns.reproduce.results import Results
from fwtui.live.protocols import Session
from fwtui.stream import events
from fwtui.stream.model import Model

ENDS = "end of reproduce "  # a marker after the runs of a document


class Campaign:
    """Begins with a recording of its own where none is going; `tick()` it until it is over, then `close()` it.

    Runs of before do not count for it, so that its recording holds everything that its answers rest on.
    """

    def __init__(self, live: Session, name: str, scale: Scale, say: Callable[[str], None]):
        """Raises Refused where the recording cannot begin."""
        self.name = name
        self._live = live
        self._preset = presets()[name]
        self._performer = Performer(live, self._preset, scale, self._preset.limit(scale.quick, alone=True), say)
        self.cancelled = False
        self._recorder = None
        if live.recorder is None:
            self._recorder = record(live, self._preset, None, None, self._preset.heading(scale))

    def tick(self) -> bool:
        """Start the next run if none is going and it was not cancelled; False when all is over. Never blocks."""
        return self._live.busy or (not self.cancelled and self._performer.advance())

    def cancel(self) -> None:
        """No further run; the one that is going has to be cancelled too, and is recorded to its end."""
        self.cancelled = True

    def close(self) -> None:
        """End the recording that it began, and tell where it is."""
        self._live.mark(f"{ENDS}{self.name}")
        recorder, self._recorder = self._recorder, None
        if recorder is not None and self._live.recorder is recorder:
            self._live.stop_recording()
            self._live.tell(events.Notice(t=self._live.now, text=f"recorded {recorder.path}"))


def held(model: Model, name: str, others: Sequence[Model] = ()) -> Results:
    """What a session holds of a document: the runs of its last campaign, or all where it was not run as one."""
    begun = [m for m in model.markers if m.text.startswith((BEGINS, ENDS))]
    last = next((i for i, m in reversed([*enumerate(begun)]) if m.text.removeprefix(BEGINS).split(" ")[0] == name), None)
    if last is None:
        return Results(model, others)
    return Results(model, others, begun[last].t, begun[last + 1].t if last + 1 < len(begun) else inf)
