"""What the words on the screens mean, each in one plain line or two, for the help: the one table of terms."""

from __future__ import annotations

import re

from fwtui.analysis.warps import STALLS
from fwtui.stream.listing import OTHER
from fwtui.stream.model import WHOLE_RUNS

# names of one term are separated by commas; in the order of the alphabet, then why warps do not issue, by the hardware's names
GLOSSARY = (
    (
        "bandwidth by model, bandwidth (model), asked of memory",
        "bytes that a kernel asks for / total; caches answer some: it can pass the peak",
    ),
    ("bank", "a part of shared memory; all banks work at once, each on one word at a time"),
    ("balance, imbalance", "the most work of a rank over the mean of all; 1 is even"),
    ("block", "GPU threads on one multiprocessor that use the same shared memory and can wait for each other"),
    ("broadcast", "one rank sends the same to all others: the panel that they need in a round"),
    ("cache", "a small, fast memory in which the hardware keeps what was used last"),
    ("centre", "the vertices that reach all others within the radius"),
    ("checksum", "one number computed from all distances (Fletcher's sum); equal results have equal checksums"),
    ("clean pass", "a pass timed as a whole, with no clock inside"),
    ("cue card", "what a lecture says at a place of a recording; {key[presenter]} presents one after the other"),
    ("diameter, radius", "the longest distance; the least distance within which some vertex reaches all others"),
    (
        "DRAM, DRAM (GPM), memory traffic",
        "the device's own memory; of a run, the share of its peak that GPM counted in the clean passes",
    ),
    ("eager, graph", "steps launched one by one, or all at once as a captured CUDA graph"),
    ("efficiency", "speed-up over one device / number of devices; 100 % is all that they can gain together"),
    ("▲ FASTER, ▼ SLOWER", "by more than 1 % with 95 % confidence, from the passes of both runs (Mann-Whitney test)"),
    ("G(512, 0.3)", "random graph: 512 vertices, and each possible edge is there with probability 0.3"),
    ("GPM", "performance counters that the GPU reads itself while a kernel runs (Hopper and later)"),
    ("H2D, D2H", "copies from host to device and from device to host; they are outside the clock"),
    ("indicative", "a time from fewer than 10 passes, or from less than half a second of them"),
    ("instrumentation", "how much longer (or shorter) the phase passes took than the clean ones"),
    ("kernels 95 %", "share of time in which any kernel ran (NVML); not how much of the GPU it used"),
    ("kernel", "a program for the GPU that many threads carry out at once; here also the algorithm as a whole"),
    ("launch", "the start of a kernel on the GPU"),
    (
        "limit, limit (probe)",
        "the most that this device can do: relaxations alone, all in registers ({key[limits]} measures it)",
    ),
    ("model", "a kernel's own description: how many bytes and relaxations each of its steps needs"),
    ("multiprocessor, SM", "a part of the GPU that runs blocks of threads; a GPU has many"),
    ("n/a", "not known on this machine, or not for so short a run; it never means 0"),
    ("negative cycle", "a cycle whose length is below 0; no shortest paths exist then, and times are struck through"),
    ("noisy", "other programs took cores that the clean passes needed"),
    ("NOT COMPARED", "other work, or a time that does not count: no ratio is formed"),
    (
        "occupancy, SM occ, warps possible, warps resident",
        "share of a multiprocessor's room for warps that is taken; theory computes it, GPM counts it",
    ),
    ("of limit", "rate / limit, for the fastest loop that is right for this number type and sign"),
    (
        "old runs",
        f"the last {WHOLE_RUNS:,} runs are held whole; passes, rounds and source of others come from the recording",
    ),
    ("panel, panels", "the tiles in the row and the column of the pivot, second in a round; over several ranks the row travels"),
    ("pass", "one whole computation on the same input; a run times several"),
    ("phase", "a part of each round that is timed by itself, such as pivot, panels and rest"),
    ("phase pass", "a pass with a clock at every phase; the middle one of several is shown"),
    ("pivot", "the tile on the diagonal that a round goes through; it comes first, as it needs only itself"),
    ("range proved by ...", "how it is known that no distance is too large for the number type"),
    ("rank", "one of several processes that share a matrix, each with its GPU or its cores and its share of the rows"),
    ("rate, relax/s", "relaxations per second: n^3 / total"),
    ("refused", "it could not be run as asked; the sentence says why, and what to do"),
    ("register", "a place for one number inside a core or a thread: the fastest memory there is"),
    ("relaxation", "one question: is it shorter through k? d[i,j] = min(d[i,j], d[i,k] + d[k,j]). A run asks n^3 of them"),
    ("rest", "all tiles of a round that are neither pivot nor panels; they come last and are most of the work"),
    ("= SAME, ? UNCLEAR", "within 1 % with 95 % confidence; or the measurement cannot tell, and Compare says why"),
    ("samples", "looks at what each warp does, at even distances: 74 % of them is about 74 % of its time"),
    (
        "separator, supernode",
        "vertices that cut a sparse graph in two; some that leave it together, in an order that fills few",
    ),
    ("shared memory", "a small memory in each multiprocessor, close to the threads of a block"),
    ("simulated", "every GPU thread ran in Python: the result is checked, but nothing is timed"),
    ("strong components", "sets of vertices that all reach each other"),
    ("struck through", "the distances are wrong, or not checked, or no right ones exist"),
    ("throttled", "the GPU lowered its clocks while the clean passes ran"),
    ("tile", "one of the square blocks into which blocked kernels cut the matrix; also the length of its side"),
    ("~100x, >10x", "from few passes, but too far apart for noise; what is left without all that noise may have cost"),
    ("total", "median of the clean passes ± half of its 95 % interval; without copies"),
    ("verified", "every distance was compared with SciPy's, and agrees"),
    ("verified · 16 rows", "only these rows were compared, with Dijkstra's algorithm; the other rows were not"),
    ("vs base, baseline", "how many times as fast as the baseline, for runs of the same n"),
    ("░ wait, waiting for the panel", "time in which a rank has nothing to do: the row that it needs is not there yet"),
    ("warp", "32 GPU threads that run together"),
    ("nothing measurable", "the instrumentation is no greater than the ± of the total, so it says nothing"),
    *(
        (f"{name} ({one.verb})", one.meaning + (f". What helps: {one.advice}" if one.advice else ""))
        for name, one in STALLS.items()
        if name != OTHER
    ),
)


def names(term: str) -> list[str]:
    """The names of one line of the table; a comma in brackets separates none."""
    return re.split(r", (?![^(]*\))", term)


def used(text: str) -> list[str]:
    """The terms that a text uses, one word or several, also in the plural."""
    plain = [name for term, _ in GLOSSARY for name in names(term) if re.fullmatch(r"[A-Za-z ]+", name)]
    return [name for name in plain if re.search(rf"\b{re.escape(name)}s?\b", text, re.IGNORECASE)]
