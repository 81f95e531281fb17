"""What many tests use: a model of events, a check that cancels, a terminal, an environment, whether a process is gone."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fwtui.engine.engine import Cancelled
from fwtui.experiment import user_kernel_registry
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.model import Model


def model_of(told: Iterable[events.Event | Unknown]) -> Model:
    """What these events add up to."""
    model = Model()
    model.apply_all(told)
    return model


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


def occupancy(**changes: Any) -> events.Occupancy:
    """Of an op that keeps half of the warps busy, but for these fields."""
    usual = {"t": 1.0, "run": 1, "op": "rest", "threads": 256, "registers": 40, "shared_bytes": 0, "limiters": ()}
    return events.Occupancy(**{**usual, "blocks": 4, "warps": 32, "max_warps": 64, "source": "table", **changes})


def documented_fields(of: str) -> list[str]:
    """The fields of the JSON that the page of the commands explains below the line that begins so."""
    page = (Path(__file__).parents[1] / "fwtui" / "commands" / "README.md").read_text(encoding="utf-8")
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
    """As in a process that has admitted none."""
    user_kernel_registry._user_kernels.clear()
