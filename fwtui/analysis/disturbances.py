"""What kept a run's times from being the kernel's own: lowered clocks, other work on the machine, clocks at its phases."""

from __future__ import annotations

from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.model import Evidence
from fwtui.stream.run import Run
from fwtui.stream.throttle import throttled

TAKEN = 0.1  # of the cores that a run needs, by other work: a machine's own housekeeping takes a few percent of them
GUIDE = 0.1  # of the total: clocks at the phases cost a few percent; beyond that they are not the phases of a clean pass


class Disturbance(NamedTuple):
    """What happened to a run, in one word and in more."""

    word: str
    why: str

    def __str__(self) -> str:
        return f"{self.word}: {self.why}"


def disturbances(run: Run, evidence: Evidence | None) -> tuple[Disturbance, ...]:
    """What disturbed the run's clean passes, by what telemetry said of them; its time is then not the kernel's own."""
    if evidence is None:
        return ()
    found: list[Disturbance] = []
    if run.backend == "cuda" and (reasons := throttled(evidence.throttle)):
        found.append(Disturbance("throttled", ", ".join(reasons)))
    others, cores = evidence.other_cpu, evidence.cores
    if others is not None and cores:
        # a kernel on all cores loses by whatever runs beside it; all others, and what launches on a GPU, need one that is free
        needed = cores if run.backend == "cpu" and run.experiment.options.get("cores") else 1
        if others * cores + needed - cores > TAKEN * needed:
            found.append(Disturbance("noisy", f"other work used {100 * others:.0f} % of the CPU"))
    return tuple(found)


def instrumentation(run: Run) -> list[str]:
    """How much longer or shorter the phase pass took, where that is more than the clean passes differ among themselves."""
    done = run.done
    if done is None or done.instrumentation is None:
        return []
    extra = done.instrumentation
    if run.seconds and done.spread is not None and abs(extra) <= done.spread * run.seconds:
        return ["instrumentation: nothing measurable"]
    share = f" ({100 * extra / run.seconds:+.1f} %)" if run.seconds else ""
    told = f"instrumentation {'-' if extra < 0 else '+'}{units.duration(abs(extra))}{share}"
    return [told, *["the phases' shares are a guide"] * bool(phases_doubt(run))]


def phases_doubt(run: Run) -> str:
    """Why the phases' shares are no more than a guide; empty where they are."""
    done = run.done
    if done is None or done.instrumentation is None or not run.seconds:
        return ""
    extra = done.instrumentation / run.seconds
    if abs(extra) <= max(GUIDE, done.spread or 0.0):
        return ""
    how = f"{100 * abs(extra):.0f} % {'less' if extra < 0 else 'longer'}"
    return f"the passes with a clock at each phase took {how}; the phases' shares are a guide"
