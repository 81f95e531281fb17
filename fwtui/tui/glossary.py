"""What the words on the screens mean, in one plain line each, for the help."""

from __future__ import annotations

NUMBERS = (
    ("relaxation", "d[i,j] = min(d[i,j], d[i,k] + d[k,j]); a run does n^3 of them"),
    ("rate, relax/s", "relaxations per second: n^3 / total"),
    ("total", "median of the clean passes ± half of its 95 % interval; without copies"),
    ("pass", "one whole computation on the same input; a run times several"),
    ("clean pass", "timed as a whole, with no clock inside"),
    ("phase pass", "with a clock at every phase; the middle one of several is shown"),
    ("instrumentation", "how much longer (or shorter) those passes took than the clean ones"),
    ("within the spread", "that difference is no greater than the ± of the total, so it says nothing"),
    ("limit (probe)", "the inner loop's instructions alone, fed from registers: fwtui doctor --measure"),
    ("of limit", "rate / the fastest such loop that is right for this number type and sign"),
    ("bandwidth (model)", "bytes of the kernel's own model / total; not what DRAM really moved"),
    ("DRAM, SM occ (GPM)", "the GPU's own counters; in the panel: while the clean passes ran"),
    ("occupancy (theory)", "resident warps / possible ones, computed from the compiled kernel"),
    ("vs base", "how many times as fast as the baseline (b), for runs of the same n"),
    ("▲ FASTER, ▼ SLOWER", "by more than 1 % with 95 % confidence, from the passes of both (Mann-Whitney)"),
    ("= SAME, ? UNCLEAR", "within 1 % with that confidence; neither: the place Compare says why"),
    ("struck through", "the distances are wrong, or not checked, or there are none to be right"),
    ("indicative", "fewer than 10 passes, or less than half a second of them"),
    ("throttled", "the GPU lowered its clocks while the clean passes ran"),
    ("n/a", "not known on this machine, or not for so short a run; it never means 0"),
)
GLOSSARY = (
    ("verified", "every distance was compared with SciPy's, and agrees"),
    ("verified · 16 rows", "only these rows were compared, with Dijkstra's; the other rows were not"),
    ("fletcher", "checksum of all distances: equal results have equal ones"),
    ("refused", "it could not be run as asked; the sentence says why, and the way out"),
    ("negative cycle", "no shortest paths exist, so nothing can be right: times struck through"),
    ("simulated", "every GPU thread ran in Python: checked, but nothing is timed"),
    ("H2D, D2H", "copies from host to device and from device to host, outside the clock"),
    ("eager, graph", "launched one by one, or all at once as a captured CUDA graph"),
    ("tile", "side of the square blocks that blocked kernels cut the matrix into"),
    ("pivot, panels, rest", "of a round: the tile on the diagonal, its row and column, all others"),
    ("warp", "32 GPU threads that run together"),
    ("SM, SM occ", "a multiprocessor of the GPU; the share of its room for warps in use"),
    ("GPM", "the GPU's built-in performance counters (Hopper and later)"),
    ("G(512, 0.3)", "random graph: 512 vertices, each possible edge there with probability 0.3"),
    ("range proved by ...", "how it is known that no distance is too large for the number type"),
)
