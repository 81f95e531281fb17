"""Names of Explain's panels, for the screen and for the palette, and the panels that a run has."""

from __future__ import annotations

from fwtui.analysis.cpu import cpu_facts
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.explain import roofline

TITLES = {"warps": "Warps", "roofline": "Roofline", "ledger": "Speed of light", "occupancy": "Occupancy"}
TITLES |= {"cpu": "Cores and caches", "counters": "Counters"}
# further words by which the palette finds a panel, and panels of the terms
SEARCHED = {"warps": ", warp stall reasons, hotspots", "ledger": ", per-phase times"}
TERMS = {"roofline": "roofline", "relax/byte": "roofline", "shared-memory ceiling": "roofline", "issue-rate ceiling": "warps"}
TERMS |= {"at most 1.2x": "warps", "letters": "warps", "per cycle": "cpu", "◀ matrix": "cpu"}
OF_GPU = ("warps", "roofline", "ledger", "occupancy")
OF_CPU = ("cpu", "roofline", "ledger")
OF_CPU_WITHOUT_BYTES = ("cpu", "ledger")  # panels of a CPU kernel whose plan does not count bytes


def panels_of(model: Model, run: Run | None) -> tuple[str, ...]:
    """Return the panels for the run's device, the warp panel first if there are PC samples."""
    if run is None:
        return ("ledger",)
    counted = ("counters",) if run.counted else ()
    if cpu_facts(model, run) is not None:
        return (OF_CPU if roofline.intensity(model, run) else OF_CPU_WITHOUT_BYTES) + counted
    return (OF_GPU if run.warps else (*OF_GPU[1:], OF_GPU[0])) + counted
