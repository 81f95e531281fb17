"""Hardware counters of a run that is over, read by a profiler while somebody else goes on."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Thread

from fwtui.experiment.experiment import Experiment
from fwtui.live import counters
from fwtui.live.counters import Counters

CANCELLED = "the profiler was stopped"


class Counting:
    """Profiles in a thread of its own from the start; `outcome` is None until it is over."""

    def __init__(self, run: int, experiment: Experiment):
        self.run = run
        self.outcome: Mapping[str, Counters] | str | None = None
        self._stop = Event()
        self._thread = Thread(target=self._measure, args=(experiment,), name="counters", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """End the profiler; the outcome says so."""
        self._stop.set()

    def close(self, grace: float) -> None:
        self.cancel()
        self._thread.join(grace)

    def _measure(self, experiment: Experiment) -> None:
        try:
            outcome = counters.measure(experiment, self._stop)
        except Exception as error:  # whatever it is, the dashboard goes on
            outcome = f"the profiler could not be run: {error}"
        self.outcome = CANCELLED if self._stop.is_set() else outcome
