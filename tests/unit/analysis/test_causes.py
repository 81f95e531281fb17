"""Each cause: a run whose numbers prove it, one that differs in that number, and runs that get none."""

import re
from typing import Any

import pytest
from builders import header, model_of, occupancy, run_events
from msgspec.structs import replace

from fwtui.analysis.causes import CPU, CUDA, MIN_GAIN, hints
from fwtui.analysis.report import result
from fwtui.analysis.warps import STALLS
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry

GPU = events.Device(t=0.0, name="G", peak_bytes_per_second=4e12, multiprocessors=132, max_clock_mhz=1980.0)
FINE = {"dram_share": 0.1, "memory_share": 0.2, "compute_share": 0.7}


def run_of(**given: Any) -> Model:
    """Return a verified run of 10 ms without a hint; `given` changes its facts."""
    backend, n, seconds = given.get("backend", "cuda"), given.get("n", 1024), given.get("seconds", 0.01)
    padded = given.get("padded", n)
    experiment = Experiment(kernel=given.get("kernel", "mine"), n=n, tile=given.get("tile", 32), **given.get("asked", {}))
    relaxations = padded**3
    phases = given.get("phases", (("rest", 1.0, 32, relaxations),))
    moved = int(given.get("bytes_each", 0.5) * relaxations)
    parts = tuple(
        events.Part(phase=name, seconds=share * seconds, launches=launches, relaxations=done, device_bytes=moved)
        for name, share, launches, done in phases
    )
    run: dict[str, Any] = {"t": 1.0, "run": 1}
    facts = [
        events.Graph(vertices=n, edges=5, low=1, high=given.get("high", 1000), **run),
        occupancy(**{"shared_bytes": 8192, "blocks": 6, "warps": 48, "limiters": ("registers",), **given.get("occupancy", {})}),
        *(events.Telemetry(t=2.2 + place / 20, **given.get("read", {})) for place in range(8)),
        events.Stage(name="clean", seconds=2.0, **{**run, "t": 3.0}),
        events.Counters(op="rest", values={**FINE, **given.get("counters", {})}, **run),
        *given.get("told", ()),
        *([events.WarpSamples(op="rest", **run, **given["sampled"])] if "sampled" in given else []),
    ]
    copies: dict[str, float] = dict.fromkeys(("load", "unload"), given.get("copy", 0.001))
    about = {"backend": backend, "padded": padded, "passes": [seconds] * 12, "verdict": given.get("verdict", "verified")}
    told: list[Any] = [
        header(machine=events.Machine(cores=16)),
        GPU,
        *run_events(experiment, *facts, parts=parts, stages=copies, relaxations=relaxations, title="Mine", **about),
    ]
    if backend == "cpu":
        told = [one for one in told if not isinstance(one, events.Occupancy | events.Counters | events.Device)]
    return model_of(told)


def waits(reason: str, share: int) -> dict[str, Any]:
    """Return PC samples of which `share` percent have this stall reason."""
    return {"sampled": {"reasons": {reason: share, "selected": 100 - share}}}


def column_order(inner: str, outer: str) -> events.Source:
    """Return the source of a kernel with these variables of its two inner loops."""
    loops = (f"for {outer} in range(n):", f"    for {inner} in range(n):", "        d[i, j] = min(d[i, j], d[i, k] + d[k, j])")
    return events.Source(t=3.0, run=1, file="mine.py", first=1, lines=loops)


PLAIN = events.CpuLoop(t=3.0, run=1, op="relax", lanes=1, item_bits=32, relaxations=1, mix={"vaddss": 1, "vminss": 1, "jne": 1})
WAITS = {  # reason, percentages of samples with and without the cause, speedup without it, rung
    "long scoreboard": ("long_scoreboard", 41, 30, "1.43x", "katz-kider"),
    "LG throttle": ("lg_throttle", 12, 5, "1.14x", "blocked-vector"),
    "short scoreboard": ("short_scoreboard", 30, 20, "1.43x", "register-tile"),
    "MIO throttle": ("mio_throttle", 40, 10, "1.43x", "register-tiled"),
    "barriers": ("barrier", 20, 8, "1.25x", "look-ahead"),
    "latency": ("wait", 33, 20, "1.43x", "register-tiled"),
    "branches": ("branch_resolving", 11, 4, "1.12x", "katz-kider"),
    "final stores": ("drain", 15, 4, "1.18x", "register-tiled"),
    "constants": ("imc_miss", 10, 9, "1.11x", ""),
    "instruction cache": ("no_instructions", 25, 2, "1.33x", ""),
}


def stalled(reason: str, share: int, gain: str, rung: str) -> str:
    one = STALLS[reason]
    text = f"warps stall on {one.label} in {share} % of PC samples: {one.advice}; at most {gain} if no warp stalled on it"
    return f"{text}; see `{rung}`" if rung else text


LATENT = {"dram_share": 0.1, "memory_share": 0.2, "compute_share": 0.3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {  # what triggers it, what does not, and what is said
    "launches": ({"phases": (("rest", 1.0, 2000, 1024**3),)}, {"phases": (("rest", 1.0, 1000, 1024**3),)},
        "2,000 launches of 5.00 us each; an empty one takes up to 3.00 us; at most 2.50x if launches took no time; see "
        "`resident`"),
    "few tiles": ({"phases": (("panels", 0.91, 32, 62 * 32 * 32**3), ("rest", 0.09, 32, 961 * 32 * 32**3))},
        {"phases": (("panels", 0.2, 32, 62 * 32 * 32**3), ("rest", 0.8, 32, 961 * 32 * 32**3))},
        "the panels phase has 62 tiles per launch for 132 SMs; at most 1.93x if it used all SMs; see `look-ahead`"),
    "bytes": ({"bytes_each": 16}, {"bytes_each": 8},
        "the kernel requests 4.00 values of 4 bytes per relaxation; at most 1.43x if only its memory accesses took "
        "no time; see `katz-kider`"),
    "device memory": ({"counters": {"dram_share": 0.85}}, {"counters": {"dram_share": 0.5}},
        "device memory is 85.0 % busy (counters); at most 1.43x if only its memory accesses took no time; see "
        "`register-tiled`"),
    "spills": ({"occupancy": {"spill_bytes": 48, "registers": 255}}, {"occupancy": {"spill_bytes": 16}},
        "rest spills 48 bytes per thread to local memory, with 255 registers in use; see `register-tile`"),
    "shared memory": ({"occupancy": {"limiters": ("shared memory",), "shared_bytes": 98304, "blocks": 1, "warps": 8}},
        {"occupancy": {"limiters": ("shared memory",), "shared_bytes": 32768, "blocks": 4, "warps": 32}},
        "96.0 KiB of shared memory per block limit rest to 8 of 64 warps per SM; at most 1.43x if all warps fitted; see "
        "`staged-row-major`"),
    "registers": ({"occupancy": {"registers": 168, "blocks": 1, "warps": 8}, "counters": LATENT},
        {"occupancy": {"registers": 168, "blocks": 1, "warps": 8}},
        "168 registers per thread limit rest to 8 of 64 warps, and the phase is latency-bound: compute 30 % busy, memory 20 % "
        "busy (counters); at most 3.33x if all warps fitted; see `optimized`"),
    "achieved occupancy": ({"read": {"sm_occupancy": 0.2}}, {"read": {"sm_occupancy": 0.5}},
        "achieved occupancy is 20.0 %, 3.75x below the theoretical occupancy: a larger graph has more blocks per launch (GPM); "
        "at most 1.43x if it reached the theoretical occupancy"),
    **{key: (waits(of, share), waits(of, less), stalled(of, share, gain, rung))
       for key, (of, share, less, gain, rung) in WAITS.items()},
    "inner loop": ({"sampled": {"reasons": {"selected": 9}, "mix": {"VIADDMNMX": 8, "IMAD": 32}, "relaxations": 8}},
        {"sampled": {"reasons": {"selected": 9}, "mix": {"VIADDMNMX": 8, "IMAD": 8}, "relaxations": 8}},
        "the inner loop has 5.00 instructions per relaxation; the relaxation itself needs at most two; at most 2.50x if it had "
        "two; see `optimized`"),
    "idle threads": ({"occupancy": {"threads": 100}}, {"occupancy": {"threads": 96}},
        "rest has blocks of 100 threads: 28 of the 32 threads of its last warp are idle; at most 1.28x if they worked; see "
        "`naive`"),
    "narrow tile": ({"tile": 8}, {"tile": 16},
        "a row of a tile has 8 values of 4 bytes, but a warp can load 128 bytes at once; see `register-tiled`"),
    "scattered loads": ({"counters": {"global_load_sectors": 32e6, "global_load_requests": 1e6}},
        {"counters": {"global_load_sectors": 4e6, "global_load_requests": 1e6}},
        "a load of a warp touches 8.00x the sectors of a coalesced one (counters); at most 1.43x if all loads were coalesced; "
        "see `naive`"),
    "bank conflicts": ({"counters": {"shared_load_conflicts": 5e6, "shared_load_wavefronts": 1e7}},
        {"counters": {"shared_load_conflicts": 5e5, "shared_load_wavefronts": 1e7}},
        "bank conflicts delay 50.0 % of the shared-memory loads (counters); at most 1.43x if there were none; see "
        "`staged-row-major`"),
    "instructions": ({"counters": {"integer_instructions_per_relaxation": 6.0}},
        {"counters": {"integer_instructions_per_relaxation": 2.0}},
        "6.00 integer instructions per relaxation; the relaxation itself needs at most two (counters); at most 3.00x if it had "
        "two; see `optimized`"),
    "operands": ({"counters": {"shared_load_bytes": 8e9, "relaxations": 1e9}},
        {"counters": {"shared_load_bytes": 1e9, "relaxations": 1e9}},
        "the kernel reads 2.00 values from shared memory per relaxation: both operands, every time (counters); at most "
        "10.0x if only these reads took no time; see `register-tiled`"),
    "padding": ({"n": 1000, "padded": 1088}, {"n": 1000, "padded": 1024},
        "1,000 vertices are padded to 1,088 (whole tiles); at most 1.29x if n were a multiple of the tile; see `katz-kider`"),
    "data type": ({"high": 10, "kernel": "katz-kider"}, {"high": 17, "kernel": "katz-kider"},
        "no path is longer than 10,230: int16 can hold it, with fewer bytes than float32; at most 2.00x if two int16 values "
        "took the time of one; see `blocked-vector`"),
    "copies": ({"copy": 0.02, "kernel": "katz-kider"}, {"copy": 0.002, "kernel": "katz-kider"},
        "the kernel takes 10.0 ms, and 50.0 ms with the copies of the matrix, which --memory pinned shortens; see `naive`"),
    "stride": ({"backend": "cpu", "told": (column_order("i", "j"),)}, {"backend": "cpu", "told": (column_order("j", "i"),)},
        "the inner loop goes down a column, so each load touches another cache line: swap it with the loop over rows; see "
        "`serial`"),
    "cores": ({"backend": "cpu", "read": {"cpu_utilisation": 0.0625}}, {"backend": "cpu", "read": {"cpu_utilisation": 0.9}},
        "1.0 of 16 cores were busy; at most 16.0x if all of them were; see `tiled-cpu`"),
    "vectors": ({"backend": "cpu", "told": (PLAIN,), "seconds": 1.0, "read": {"cpu_utilisation": 0.9, "cpu_clock_mhz": 3000.0}},
        {"backend": "cpu", "seconds": 1.0, "read": {"cpu_utilisation": 0.9, "cpu_clock_mhz": 3000.0}},
        "0.025 relaxations per cycle on each busy core: each instruction does one relaxation; a vector instruction does "
        "several; see `tiled-cpu`"),
}  # fmt: skip


def said(model: Model) -> dict[str, str]:
    return {hint.key: str(hint) for hint in hints(model, model.runs[1])}


def test_every_hint_is_tested_here_and_sees_a_rung() -> None:
    assert list(CASES) == [row.key for row in (*CUDA, *CPU)]
    assert {row.rung for row in (*CUDA, *CPU)} - {""} <= set(registry())


@pytest.mark.parametrize("key", CASES)
def test_a_hint_needs_its_numbers(key: str) -> None:
    triggering, not_triggering, sentence = CASES[key]
    assert said(run_of(**triggering)).get(key) == sentence
    assert key not in said(run_of(**not_triggering))


def test_a_bound_respects_the_peak_rate_and_the_time_of_the_phase() -> None:
    work = 1024**3
    given: dict[str, Any] = {"phases": (("rest", 0.5, 32, work // 2), ("panels", 0.5, 32, work // 2)), "bytes_each": 16}
    model = run_of(**given, **waits("long_scoreboard", 90))
    assert "at most 1.18x if no warp" in said(model)["long scoreboard"], "half of the time; compute units are busy for 70 %"
    limit = events.FormLimit("float32", work / 0.01 * 4 / 3)
    model.apply(events.Limits(t=4.0, backend="cuda", forms=(limit,), complete=True))
    assert "at most 1.14x if only its memory accesses took no time" in said(model)["bytes"]
    for key, (triggering, _, _) in CASES.items():
        model = run_of(**triggering)
        gains = [float(gain) for gain in re.findall(r"at most ([\d.]+)x", said(model)[key])]
        assert all(gain >= MIN_GAIN for gain in gains)


def test_every_bound_respects_the_ceilings_that_its_cause_leaves() -> None:
    model, _ = load_model(shipped_folder() / "h200-n4096-naive-blocked.fwt.jsonl.gz")
    naive, tiled = ({hint.key: hint.gain.split()[2] for hint in hints(model, run) if hint.gain} for run in model.runs.values())
    issue, memory = "1.92x", "2.23x"  # 523 Grelax/s by 64 instructions, 45 % of the DRAM bandwidth
    assert naive == {"bytes": issue, "long scoreboard": issue, "inner loop": memory, "instructions": memory}
    assert tiled["inner loop"] == "2.42x", "9.07 of 11.1 instructions, in 74.6 of 96.7 % of the issue slots"


@pytest.mark.parametrize("change", [{"verdict": "wrong"}, {"backend": "simulator"}])
def test_incorrect_and_untimed_runs_get_no_hints(change: dict[str, Any]) -> None:
    model = run_of(**CASES["bytes"][0])
    assert result(model, model.runs[1])["hints"] == [CASES["bytes"][2]], "a run has them as data"
    assert said(run_of(**CASES["bytes"][0], **change)) == said(run_of()) == {}


def test_runs_near_the_peak_get_no_hints_and_no_rung_refers_to_itself() -> None:
    model = run_of(**CASES["bytes"][0])
    rate = 1024**3 / 0.01
    limit = events.Limits(t=4.0, backend="cuda", forms=(events.FormLimit("float32", rate * 2),), complete=True)
    model.apply(limit)
    assert said(model)
    model.apply(replace(limit, forms=(events.FormLimit("float32", rate * 1.1),)))
    assert said(model) == {}
    for kernel in ("katz-kider", "register-tiled"):
        assert said(run_of(kernel=kernel, **CASES["bytes"][0])) == {}
    assert "idle threads" in said(run_of(kernel="register-tiled", **CASES["idle threads"][0]))


@pytest.mark.parametrize("odd", [0.0, 1e-300, 9.2e18])
def test_impossible_numbers_break_nothing(odd: float) -> None:
    keys = "global_load_sectors global_load_requests shared_load_conflicts shared_load_wavefronts shared_load_bytes relaxations"
    model = run_of(counters=dict.fromkeys(keys.split(), odd), seconds=max(odd, 1e-9) if odd < 1e9 else 1e9, copy=0.0)
    assert not re.search("inf|nan", " ".join(said(model).values()))
