"""A document's experiments, run one after the other by a screen that has other things to do meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from fwtui import events
from fwtui.reproduce import presets
from fwtui.reproduce.execute import Performer, Session
from fwtui.reproduce.preset import Scale
from fwtui.reproduce.slim import record

BEGINS = "reproduce "  # the marker that every such session has


class Campaign:
    """Begins with a recording of its own where none is going; `tick()` it until it is over, then `close()` it."""

    def __init__(self, live: Session, name: str, scale: Scale, say: Callable[[str], None]):
        """Raises Refused where the recording cannot begin."""
        self.name = name
        self._live = live
        self._preset = presets()[name]
        self._performer = Performer(live, self._preset, scale, self._preset.limit(scale.quick, alone=True), say)
        self._recorder = None
        if live.recorder is None:
            title = f"{BEGINS}{name}{' --quick' if scale.quick else ''}"
            self._recorder = record(live, self._preset, None, None, title)

    def tick(self) -> bool:
        """Start the next run if none is going; False when all is over. Never blocks."""
        return self._live.busy or self._performer.advance()

    def close(self) -> None:
        """End the recording that it began, and tell where it is."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None and self._live.recorder is recorder:
            self._live.stop_recording()
            self._live.tell(events.Notice(t=self._live.now, text=f"recorded {recorder.path}"))
