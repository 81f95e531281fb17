"""The glossary: every term of the screens with its definition, formula and unit. The help shows it."""

from __future__ import annotations

import re

from fwtui.analysis.warps import STALLS
from fwtui.stream.listing import OTHER
from fwtui.stream.model import WHOLE_RUNS

# names of one term are separated by commas; alphabetical order, then the warp stall reasons
GLOSSARY = (
    (
        "achieved occupancy, occupancy, SM occupancy",
        "resident warps / maximum warps of an SM, measured by GPM during the timed repetitions (Run, Telemetry)",
    ),
    ("bank", "one of 32 parts of shared memory, each of which serves one word per cycle"),
    ("baseline", "the run that others are compared with: the first verified run on the same graph, or the one you choose"),
    ("block", "threads that run on one SM, share its shared memory and can synchronise"),
    (
        "bottleneck",
        "the resource that limits a phase: from launches, samples, counters, telemetry or the roofline (Run, Explain)",
    ),
    ("broadcast", "one rank sends the panel of a round to all other ranks"),
    ("cache", "a small, fast memory in which the hardware keeps recently used data"),
    ("checksum", "Fletcher's sum of all distances; runs with identical distances have the same checksum"),
    ("clock throttling, throttled", "the GPU lowered its clocks during the timed repetitions (NVML: clocks event reasons)"),
    ("cost model", "a kernel's own formula for the bytes and relaxations of each step"),
    ("cue card", "the speaker notes of a lecture at one moment of a recording; {key[presenter]} shows one after the other"),
    ("CUDA graph, stream launch", "all launches of a run recorded once and started together, or launched one by one"),
    ("DRAM throughput, DRAM util", "bytes/s of device memory, and their share of the peak, measured by GPM (Run, Telemetry)"),
    (
        "effective bandwidth, eff. bandwidth",
        "bytes that the kernel requests (cost model) / median time, in B/s; caches serve part, so it can exceed the peak (Run)",
    ),
    ("efficiency", "speedup over one device / number of devices; 100 % is ideal scaling"),
    ("▲ FASTER, ▼ SLOWER", "by more than 1 % with 95 % confidence, from the repetitions of both runs (Mann-Whitney test)"),
    ("G(512, 0.3)", "random graph: 512 vertices, each possible edge present with probability 0.3"),
    ("GPM", "performance counters that the GPU reads itself while a kernel runs (Hopper and later)"),
    ("GPU util", "share of the time with at least one kernel running (NVML, nvidia-smi); not how much of the GPU it uses"),
    ("hotspot, hotspots", "the source lines with the most PC samples (Run, Explain)"),
    ("identical distances", "both runs have the same checksum"),
    ("imbalance", "maximum / mean work of the ranks; 1 is balanced"),
    ("instrumented repetition", "a repetition with a timer at every phase; gives the per-phase times; the median one is shown"),
    ("kernel", "a program that many GPU threads execute together; here also an entry of the ladder"),
    ("kernel function", "one __global__ function of a kernel, such as pivot, panels or remainder"),
    ("ladder, rung", "the kernels from slowest to fastest; each rung changes one idea ({key[climb]})"),
    ("launch", "the start of a kernel function on the GPU"),
    ("low confidence", "a time from fewer than 10 repetitions or less than 0.5 s of them"),
    ("median time", "median of the timed repetitions ± half of its 95 % confidence interval; without copies"),
    ("multiprocessor, SM", "streaming multiprocessor: the part of a GPU that runs thread blocks; a GPU has many"),
    ("n/a", "not available: not measurable on this machine or for so short a run; it never means 0"),
    ("negative cycle", "a cycle of negative length; no shortest paths exist, and times are struck through"),
    ("noisy", "other processes used cores that the timed repetitions needed"),
    ("NOT COMPARED", "the runs did different work, or a time does not count; no ratio is formed"),
    ("not timed", "setup, copies and verification: outside the timed repetitions (Run)"),
    ("old runs", f"the last {WHOLE_RUNS:,} runs are complete in memory; details of older ones are only in the recording"),
    ("panel, panels", "phase 2 of a round: the tiles in the row and the column of the pivot, singly dependent (Katz-Kider)"),
    ("PC samples", "instruction and state of warps at regular intervals (CUPTI); 74 % of the samples is about 74 % of the time"),
    ("peak rate, % of peak", "relaxations/s of the fastest min-plus instructions from registers ({key[limits]} measures it)"),
    ("% of peak bandwidth, % peak BW", "effective bandwidth / peak bandwidth of device memory"),
    (
        "% of roofline, roofline time",
        "roofline time = max(bytes / peak bandwidth, relaxations / peak rate). The bytes are measured DRAM traffic, else those "
        "requested. % of roofline = roofline time / measured time (Explain)",
    ),
    ("per-phase times, phase", "time of pivot, panels and remainder, from the instrumented repetition (Run, Compare)"),
    ("pivot", "phase 1 of a round: the diagonal tile, which depends only on itself"),
    ("range proved by ...", "why no distance can overflow the data type"),
    ("rank", "one of several processes that share a matrix, each with a GPU or cores and some of its rows"),
    ("rate, relax/s", "relaxations per second: n^3 / median time; a sparse run does fewer, so compare its time, not its rate"),
    ("refused", "the request cannot run; the message gives the reason and the fix"),
    ("register", "storage for one value inside a core or thread: the fastest memory"),
    ("relaxation", "one update d[i,j] = min(d[i,j], d[i,k] + d[k,j]); a run performs n^3 of them"),
    ("remainder", "phase 3 of a round: all other tiles, doubly dependent (Katz-Kider); most of the work"),
    ("repetition, timed repetition", "one whole computation on the same input; a run times several, without timers inside"),
    ("= SAME, ? UNCLEAR", "within 1 % with 95 % confidence; or the measurement cannot decide, and Compare gives the reason"),
    ("separator, supernode", "vertices that cut a sparse graph in two; vertices that are eliminated together"),
    ("shared memory", "a small memory of each SM that the threads of a block share"),
    ("simulated", "every GPU thread ran in Python: the result is verified, but not timed"),
    ("speedup", "median time of the baseline / median time of the run, on the same graph (Run, Compare)"),
    ("struck through", "the distances are incorrect, unverified, or do not exist"),
    ("theoretical occupancy, theor. occ.", "resident warps / maximum that registers, shared memory and block size allow"),
    ("tile", "one of the square blocks of the matrix in blocked kernels; also the length of its side"),
    ("timer overhead", "time of the instrumented minus the timed repetitions; not measurable if below the ± of the median time"),
    ("~100x, ≥ 10x", "~ marks an estimate from few repetitions, ≥ a lower bound that allows for noise"),
    ("verified", "every distance was compared with SciPy's and agrees"),
    ("verified · 16 rows", "only these rows were compared, with Dijkstra's algorithm"),
    ("░ wait, waiting for the panel", "time in which a rank waits for the panel of the owner rank"),
    ("warp", "32 GPU threads that execute together"),
    ("warp stall reasons", "why warps could not issue an instruction, from PC samples (Explain); the list follows"),
    *(
        (one.label, one.meaning + (f". Advice: {one.advice}" if one.advice else ""))
        for name, one in STALLS.items()
        if name != OTHER
    ),
)


def names(term: str) -> list[str]:
    """Split the names of a term at commas outside brackets."""
    return re.split(r", (?![^(]*\))", term)


def used(text: str) -> list[str]:
    """Return the glossary terms that occur in a text, also in the plural."""
    plain = [name for term, _ in GLOSSARY for name in names(term) if re.fullmatch(r"[A-Za-z ]+", name)]
    return [name for name in plain if re.search(rf"\b{re.escape(name)}s?\b", text, re.IGNORECASE)]
