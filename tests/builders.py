"""The events of made-up runs and sessions with their model and file, and checks that cancel."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace
from processes import ROOT

from fwtui.engine.engine import Cancelled
from fwtui.experiment import user_kernel_registry
from fwtui.experiment.experiment import Experiment, first_experiment
from fwtui.machine import hardware
from fwtui.stream import codec, events
from fwtui.stream.codec import Unknown
from fwtui.stream.listing import Listing, shares_of, text_of
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.app import ui_state
from fwtui.tui.app.ui_state import SavedUiState


def header(**changes: Any) -> events.Header:
    """Return the header of a made-up session; `changes` replaces fields of the event."""
    return events.Header(**{"t": 0.0, "program": "fwtui test", "created": "2025-01-01T12:00:00+00:00", **changes})


def apply_all(model: Model, told: Iterable[events.Event | Unknown]) -> Model:
    """Apply the events to the model, and return it."""
    for event in told:
        model.apply(event)
    return model


def model_of(told: Iterable[events.Event | Unknown]) -> Model:
    """Return a model that has applied these events."""
    return apply_all(Model(), told)


def write_session(path: Path, told: Sequence[events.Event], closed: bool = True) -> Path:
    """Write the events as a session file, with an end unless it is cut off, and return its path."""
    end = [events.End(t=told[-1].t, reason="closed", events=len(told))] * closed
    path.write_bytes(b"".join(map(codec.encode, [*told, *end])))
    return path


def run_started(e: Experiment = Experiment(), run: int = 1, t: float = 1.0, **fields: Any) -> events.RunStarted:  # noqa: B008
    """Return the beginning of a run, by default on the CPU; `fields` replaces fields of the event."""
    return events.RunStarted(**{"title": e.kernel.title(), "backend": "cpu", "phases": (), **fields}, t=t, run=run, experiment=e)


def run_parts(seconds: Mapping[str, float]) -> list[events.Part]:
    """Return the parts of an instrumented repetition with one launch for each phase."""
    return [events.Part(phase=key, seconds=took, launches=1, relaxations=1, device_bytes=1) for key, took in seconds.items()]


def run_events(
    e: Experiment,
    *more: events.Event,
    run: int = 1,
    t: float = 1.0,
    backend: str = "cuda",
    passes: Sequence[float] = (),
    parts: Sequence[events.Part] = (),
    stages: Mapping[str, float] = MappingProxyType({}),
    verdict: str = "verified",
    how: str = "so it is",
    checksum: str = "0123456789abcdef",
    outcome: str = "done",
    message: str = "",
    seconds: float | None = None,
    spread: float = 0.001,
    padded: int = 0,
    relaxations: int = 0,
    device_bytes: int | None = None,
    **started: Any,
) -> list[events.Event]:
    """Return the events of a whole run, with `more` before its repetitions, which follow each other from `t` on.

    The median time is `seconds`, by default that of `passes`. `started` replaces fields of RunStarted.
    """
    at: dict[str, Any] = {"t": t, "run": run}
    names = tuple(events.PhaseName(part.phase, part.phase) for part in parts)
    work = relaxations or sum(part.relaxations for part in parts) or e.n**3
    moved = sum(part.device_bytes for part in parts) if device_bytes is None else device_bytes
    told = [
        run_started(e, backend=backend, **{"phases": names, **started}, **at),
        events.Planned(n=e.n, padded=padded or e.n, steps=1, relaxations=work, device_bytes=moved, **at),
        *(events.Stage(name=name, seconds=took, **at) for name, took in stages.items()),
        *more,
    ]
    for each in passes:
        at["t"] += each
        told.append(events.Sample(seconds=each, since=at["t"] - each, **at))
    if parts:
        told.append(events.Phases(seconds=sum(part.seconds for part in parts), parts=tuple(parts), **at))
    if outcome == "done":
        told.append(events.Verdict(verdict=verdict, how=how, checksum=checksum, **at))
    middle = sorted(passes)[len(passes) // 2] if passes and seconds is None else seconds
    counted = {"median": middle, "spread": spread, "count": len(passes)}
    return [*told, events.RunDone(outcome=outcome, message=message, **counted, **at)]


class SessionBuilder:
    """A session of made-up runs with numbers from 1, as a model; `first` are the events before the runs."""

    def __init__(self, *first: events.Event) -> None:
        self.model = model_of(first)

    def run(self, e: Experiment, *facts: events.Event, **changes: Any) -> Run:
        """Add a run and return it; `changes` are arguments of `run_events`, and `facts` get the number of the run."""
        number = len(self.model.runs) + 1
        numbered = [replace(fact, run=number) if hasattr(fact, "run") else fact for fact in facts]
        apply_all(self.model, run_events(e, *numbered, run=number, **changes))
        return self.model.runs[number]


def occupancy(**changes: Any) -> events.Occupancy:
    """Return the occupancy of an op that keeps half of the warps busy; `changes` replaces fields of the event."""
    usual = {"t": 1.0, "run": 1, "op": "rest", "threads": 256, "registers": 40, "shared_bytes": 0, "limiters": ()}
    return events.Occupancy(**{**usual, "blocks": 4, "warps": 32, "max_warps": 64, "source": "table", **changes})


def documented_fields(of: str) -> list[str]:
    """Return the fields of the JSON that the README of the commands explains below the line that begins with `of`."""
    page = (ROOT / "fwtui" / "commands" / "README.md").read_text(encoding="utf-8")
    table = page.partition(f"\n{of}")[2].split("\n\n")[1]
    return re.findall(r"(?m)^\| `(\w+)` \|", table)


def never() -> None:
    """A check that never cancels."""


def after(count: int) -> Callable[[], None]:
    """A check that raises Cancelled at its count-th call."""
    calls = iter(range(1, 10**9))

    def check() -> None:
        if next(calls) >= count:
            raise Cancelled

    return check


def forget_user_kernels() -> None:
    """Remove all registered user kernels."""
    user_kernel_registry._user_kernels.clear()


def listed(listing: Listing, samples: events.WarpSamples) -> list[events.Event]:
    """Return the events of a run's sampled code, as the sampling process sends them after `samples`."""
    shares = shares_of(listing, "c0de", samples.run, samples.op, samples.samples)
    told = replace(samples, mix=listing.mix, relaxations=listing.relaxations)
    return [told, replace(text_of(listing, "c0de"), t=told.t), replace(shares, t=told.t)]


def save_form(data: Path, experiment: Experiment) -> None:
    """Save a form in the user's data folder; a dashboard on this machine opens with it."""
    state = SavedUiState(default=first_experiment(hardware.driver_present()), form=experiment)
    (data / "fwtui").mkdir(parents=True, exist_ok=True)
    (data / "fwtui" / ui_state.path().name).write_bytes(msgspec.json.encode(state))
