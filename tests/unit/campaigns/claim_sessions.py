"""Sessions made by hand in which a document's claim holds, and in which it is refuted."""

from collections.abc import Iterable
from typing import Any

from made_sessions import Made, int16, int32

from fwtui.campaigns.reproduce.documents import sing
from fwtui.campaigns.reproduce.results import ask
from fwtui.experiment.experiment import Experiment
from fwtui_kernels import registry


def pair(slow: Experiment, fast: Experiment, ratio: float, **more: Any) -> Made:
    """Two runs, the first one `ratio` times as long as the other."""
    return Made().add(slow, ratio, **more).add(fast, 1.0, **more)


def conflicts_counted(natural: float, cyclic: float = 0.0, row_major: float = 1.5) -> Made:
    """Conflicts of so many wavefronts in a million, and sectors per load of the row-major rung over the others'."""
    made = Made()
    for rung, extra, sectors in (("row-major", 0.0, row_major), ("natural", natural, 1.0), ("load", cyclic, 1.0)):
        counted = {"shared_load_wavefronts": 1e6, "shared_load_conflicts": extra}
        counted |= {"global_load_requests": 1e5, "global_load_sectors": 4e5 * sectors}
        made.add(ask(f"staged-{rung}", 8192), counters=counted)
    return made


def cubes(second: float) -> Made:
    return Made().add(ask("staged-load", 1024), 1.0).add(ask("staged-load", 2048), second)


def bases(tile_32: float) -> Made:
    made = Made()
    for n in (256, 8192):
        for tile in (4, 8, 16, 32):
            made.add(ask("kleene", n, tile=tile), tile_32 if tile == 32 else 1.0)
    return made


def fewer(small: float, large: float) -> Made:
    made = Made()
    for n, gain in ((256, small), (8192, large)):
        made.add(ask("kleene", n, tile=16), gain)
        for count, took in ((1, 9.0), (4, 1.0), (16, 2.0)):
            made.add(ask("kleene-base", n, results=count, keep=0), took)
    return made


def base_cases(one: float, shared: float) -> Made:
    made = Made().add(ask("kleene", 256, tile=8), phases={"base": one, "sequential": 1.0})
    made.add(ask("kleene-base", 256, tile=8, results=4, keep=0), phases={"base": shared})
    for count in (1, 4, 16):
        for keep in (0, 1):
            made.add(
                ask("kleene-base", 256, results=count, keep=keep), phases={"base": shared if keep == 0 else 1.0, "regular": 1.0}
            )
    return made


def multiplies(last: dict[str, float]) -> Made:
    made = Made()
    full = {"base": 1.0, "sequential": 1.0, "regular": 1.0, "volkov": 1.0}
    for tile in registry()["kleene"].tiles:
        made.add(ask("kleene", 1024, tile=tile), phases=full if tile < max(registry()["kleene"].tiles) else last)
    return made


def even(make: Any, wins_from: int, sizes: Iterable[int] = (16, 60, 90, 110, 200, 512)) -> Made:
    """Where the GPU wins from that size on, by its copies."""
    made = Made()
    for n in sizes:
        made.add(make("serial", n), 1.0).add(make("naive", n), 0.1, copies=0.1 if n >= wins_from else 2.0)
    return made


def kinds_of_memory(mapped_wins_to: int) -> Made:
    made = Made()
    for n in (64, 512, 1024, 2048):
        for memory in ("device", "pinned", "mapped", "managed"):
            fast = (memory == "mapped") == (n <= mapped_wins_to)
            made.add(int32("naive", n, memory=memory), 1.0 if fast else 9.0)
    return made


def densities(last: float) -> Made:
    made = Made()
    for density in sing.DENSITIES:
        made.add(int32("naive", 2048, density=density), last if density == 0.9 else 1.0)
    return made


def generated(dense_exact: float, dense: float = 1.0) -> Made:
    made = Made()
    for density in sing.GENERATED:
        for exact in (False, True):
            took = 1.0 if density < 0.9 else dense_exact if exact else dense
            made.add(int32("naive", 2048, density=density, exact=exact), stages={"graph": took})
    return made


def by_tile(*seconds: float, verdict: str = "verified") -> Made:
    made = Made()
    for tile, took in zip((2, 4, 8, 16, 32), seconds, strict=True):
        made.add(int32("katz-kider", 2048, tile=tile), took, verdict=verdict if tile == 8 else "verified")
    return made


def files(large_read: float) -> Made:
    made = Made().add(int32("katz-kider", 256, file="a.gr"), 1.0, copies=1.0, stages={"read": 1.0})
    return made.add(int32("katz-kider", 1024, file="b.gr"), 1.0, copies=1.0, stages={"read": large_read})


def blocked_pairs(flat: float) -> Made:
    made = Made().add(int32("katz-kider", 2048), 1.0).add(int32("blocked-one-dimensional", 2048), flat)
    return made.add(int32("blocked-many-launches", 2048), 1.0)


def five(vector: float, cpu: float) -> Made:
    made = Made().add(int16("serial", 1024), cpu)
    for wanted in (int16("naive", 1024), int16("naive-vector", 1024), int16("pseudo-blocked", 1024, results=4)):
        made.add(wanted, 2.0)
    return made.add(int16("katz-kider", 1024, tile=16, threads=256), 2.0).add(int16("blocked-vector", 1024), vector)


def heights(best: int) -> Made:
    made = Made().add(int16("naive", 4096), 2.0)
    for height in (1, 2, 4, 8, 16, 32):
        made.add(int16("pseudo-blocked", 4096, results=height), 1.0 if height == best else 2.0)
    return made


def blocks(best: int, many: float = 1.2) -> Made:
    made = Made()
    for threads, side in ((64, 8), (256, 16), (1024, 32)):
        took = 1.0 if threads == best else many if threads == 1024 else 2.5
        made.add(int16("naive", 2048, threads=threads), took)
        made.add(int16("katz-kider", 2048, tile=side, threads=threads), took)
        took = 1.0 if threads == best else many if threads == 1024 else 1.5
        made.add(int16("blocked-vector", 2048, tile=2 * side, threads=threads), took)
    return made


def managed(*ratios: float) -> Made:
    """Managed memory as fast as device memory by these ratios at 512, 1024, ..."""
    made = Made()
    for place, ratio in enumerate(ratios):
        made.add(int32("naive", 512 << place), ratio).add(int32("naive", 512 << place, memory="managed"), 1.0)
    return made


PEAK = 2 * 128 * 132 * 1980e6  # FLOP/s of GPU
N3 = 2048**3
FILLED = {"base": 1.0, "sequential": 1.0, "regular": 1.0, "volkov": 1.0}
PHASE_3 = {"pivot": 0.01, "panels": 0.02, "rest": 0.97}
# the slower and the faster run of a claim about two kernels, and the ratios of their times that confirm and refute it
PAIRS: dict[str, tuple[Experiment, Experiment, float, float]] = {
    "LS1": (ask("katz-kider", 8192), ask("staged-load", 8192), 4.0, 3.0),
    "LS2": (ask("katz-kider", 8192), ask("optimized", 8192), 2.2, 1.0),
    "LS3": (ask("optimized", 8192), ask("staged-load", 8192), 2.4, 1.1),
    "LS4": (ask("naive", 8192), ask("katz-kider", 8192), 6.0, 2.0),
    "LS5": (ask("serial", 2048), ask("staged-load", 4096), 20.0, 18.0),
    "LS9": (ask("optimized", 8192), ask("register-tile", 8192), 1.05, 1.3),
    "LS13": (ask("staged-load", 8192), ask("kleene", 8192), 1.4, 3.0),
    "SF6": (int32("scipy", 512), int32("serial", 512), 2.0, 0.5),
    "SF7": (int32("serial", 2048), int32("naive", 2048), 100.0, 200.0),
    "SF10": (int32("naive", 2048), int32("two-matrices", 2048), 1.08, 2.0),
    "CS4": (int32("blocked-global", 4096), int32("katz-kider", 4096), 2.0, 1.2),
    "CS5": (int32("blocked-branch", 4096), int32("katz-kider", 4096), 1.2, 1.0),
    "CA6": (int16("two-matrix-blocked", 8192), int16("katz-kider", 8192), 1.2, 0.9),
    "CA7": (int16("one-cooperative", 8192, launch="eager"), int16("katz-kider", 8192), 1.2, 0.5),
    "CA9": (int16("naive", 4099, pitch=0), int16("naive", 4099, pitch=1), 1.2, 1.0),
}
# the run of a claim about one, its seconds and facts that confirm and refute it
SINGLE: dict[str, tuple[Experiment, dict[str, Any], dict[str, Any]]] = {
    "LS6": (ask("naive", 2048), {"seconds": N3 * 16 / 4.8e12 / 0.54}, {"seconds": N3 * 16 / 4.8e12 / 1.1}),
    "LS7": (ask("katz-kider", 2048), {"seconds": 60 * N3 / PEAK}, {"seconds": 120 * N3 / PEAK}),
    "LS8": (ask("staged-load", 2048), {"seconds": 13 * N3 / PEAK}, {"seconds": 30 * N3 / PEAK}),
    "LS10": (ask("staged-load", 2048), {"shared": 1024}, {"shared": 4096}),
    "HE3": (ask("kleene-base", 256, results=4), {"verdict": "wrong"}, {}),
    "SF3": (int32("naive", 64), {"seconds": 0.01, "copies": 1.0}, {"seconds": 0.5, "copies": 1.0}),
    "SF4": (int32("naive", 8192), {"seconds": 10.0, "copies": 1.0}, {"seconds": 8.0, "copies": 1.0}),
    "CS1": (int32("katz-kider", 4096), {"phases": PHASE_3}, {"phases": {"pivot": 0.2, "panels": 0.2, "rest": 0.6}}),
    "CA3": (int16("naive", 2048), {"device_bytes": int(5e12)}, {"device_bytes": int(4e12)}),
    "CA8": (int16("blocked-vector", 59392), {}, {"verdict": "wrong"}),
    "CA10": (int16("serial", 100), {"edges": 2950}, {"edges": 6950}),
}
HOLDING_AND_REFUTING: dict[str, tuple[Made, Made]] = {
    **{claim: (pair(slow, fast, yes), pair(slow, fast, no)) for claim, (slow, fast, yes, no) in PAIRS.items()},
    **{claim: (Made().add(run, **yes), Made().add(run, **no)) for claim, (run, yes, no) in SINGLE.items()},
    "LS11": (conflicts_counted(7.5e5), conflicts_counted(0.0)),
    "LS12": (cubes(8.0), cubes(2.0)),
    "HE1": (bases(1.1), bases(0.8)),
    "HE2": (fewer(1.5, 1.0), fewer(1.5, 1.5)),
    "HE5": (base_cases(33.0, 1.0), base_cases(2.0, 1.0)),
    "HE6": (base_cases(1.0, 2.0), base_cases(1.0, 1.0)),
    "HE7": (multiplies({"base": 1.0, "volkov": 1.0}), multiplies(FILLED)),
    "SF1": (even(int32, 110), even(int32, 512)),
    "SF2": (kinds_of_memory(1024), kinds_of_memory(0)),
    "SF5": (densities(1.05), densities(1.2)),
    "SF8": (managed(0.9, 1.0, 1.0), managed(0.4, 0.35, 0.3)),
    "SF9": (generated(5.0), generated(1.0)),
    "CS2": (by_tile(9, 5, 0.44, 0.37, 0.28), by_tile(9, 5, 0.28, 0.37, 0.44)),
    "CS3": (by_tile(9, 5, 3, 2, 1, verdict="wrong"), by_tile(9, 5, 3, 2, 1)),
    "CS6": (files(0.5), files(5.0)),
    "CS7": (blocked_pairs(1.5), blocked_pairs(1.0)),
    "CA1": (even(int16, 90), even(int16, 512)),
    "CA2": (five(1.0, 570.0), five(3.0, 570.0)),
    "CA4": (heights(4), heights(8)),
    "CA5": (blocks(256), blocks(1024)),
}
