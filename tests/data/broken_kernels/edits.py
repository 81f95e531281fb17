"""Eleven edits that break the kernels in this folder, with the expected error in the simulator and on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
BLOCKED, BY_VERTEX = "blocked.py", "by_vertex.py"


class Edit(NamedTuple):
    """A replacement in a correct file, and patterns that the error sentence must match."""

    file: str
    old: str
    new: str
    outcome: str
    simulated: str
    gpu: str = ""  # where it differs there
    more: tuple[tuple[str, str], ...] = ()  # other places that change with it

    def write(self, folder: Path) -> Path:
        """Write the broken kernel into that folder and return its path."""
        text = (FOLDER / self.file).read_text()
        for old, new in ((self.old, self.new), *self.more):
            assert text.count(old) == 1, f"{self.file} says {text.count(old)} times {old!r}"
            text = text.replace(old, new)
        path = folder / "mine.py"
        path.write_text(text)
        return path


_LOADED = """        middle[y, x] = distance[base + y, left + x]
        cuda.syncthreads()
"""
_REST = '"rest": Op(rest, block, lambda args: (others, others)),'
_WRONG = r"row \d+, column \d+: [\w .+-]+, expected [\w ]+ \(\d+ wrong cells?\); it began in "
EDITS = {
    "missing barrier": Edit(
        BLOCKED,
        _LOADED,
        _LOADED.replace("        cuda.syncthreads()\n", ""),
        "racy",
        r"n = 5, one more than a tile: it races: mine\.py:102 `.*` reads what mine\.py:9[89] `.*` of thread \(\d, \d\) "
        r"writes in shared memory; no barrier between them: put cuda.syncthreads\(\) there; wrong at "
        + _WRONG
        + r"remainder of round \d .*",
        r"n = \d+, .*: ran 5 times, \d different results: it races; .*|n = \d+, .*: wrong at "
        + _WRONG
        + r"remainder of round \d .*",
    ),
    "off by one": Edit(
        BLOCKED,
        "best = distance[top + y, left + x]\n        for k in range(tile):",
        "best = distance[top + y, left + x]\n        for k in range(tile - 1):",
        "wrong",
        r"n = \d+, .*: wrong at " + _WRONG + r"remainder of round 1 .*: as if k = 3 were left out",
        r"n = \d+, .*: wrong at " + _WRONG + r"remainder of round 1 .*: as if k = 31 were left out",
    ),
    "stale tile": Edit(
        BLOCKED,
        "to[y, x] = distance[top + y, base + x]",
        "to[y, x] = kept[top + y, base + x]",
        "wrong",
        r"n = \d+, .*: wrong at " + _WRONG + r"remainder of round \d .*: as if d\[i, k\] were read from the input graph",
        r"n = \d+, .*: wrong at " + _WRONG + r"remainder of round \d .*",
        more=(
            ("def rest(distance, p):", "def rest(distance, kept, p):"),
            (_REST, _REST.replace(")),", "), lambda args: (0, 1)),")),
        ),
    ),
    "tile that is never stored": Edit(
        BLOCKED,
        "        distance[base + y, base + x] = own[y, x]\n",
        "",
        "wrong",
        r"n = \d+, .*: wrong at " + _WRONG + r"pivot of round 1 .*: as if the step had not run",
    ),
    "wrong transposition": Edit(
        BLOCKED,
        "to[y, x] = distance[top + y, base + x]",
        "to[x, y] = distance[top + y, base + x]",
        "wrong",
        r"n = \d+, .*: wrong at " + _WRONG + r"remainder of round \d .*: as if d\[i, k\] were read with its tile transposed",
    ),
    "race between panels and rest": Edit(
        BLOCKED,
        ", rest, 1, (panels_at,))",
        ", rest, 1)",
        "wrong",
        r"the plan is wrong: panels of round 1 writes rows 0-3, columns 4-7, which remainder of round 1 reads at the same .*",
    ),
    "no pad guard": Edit(
        BY_VERTEX,
        "if i < distance.shape[0] and j < distance.shape[1]:",
        "if i >= 0:",
        "broken",
        r"n = 1, one vertex: the kernel .* outside its arrays \(in block \(0, 0\), thread \(\d, \d\)\): mine.py:3[12]: .*",
        r"n = \d+, .*(wrong at|outside its memory).*",
    ),
    "overflow of the sentinel": Edit(
        BY_VERTEX,
        "            from_k = distance[k, j]\n",
        "            from_k = distance[k, j]\n"
        "            if to_k >= number(2**30 - 1):\n"
        "                to_k = number(2**31 - 1)\n"
        "            if from_k >= number(2**30 - 1):\n"
        "                from_k = number(2**31 - 1)\n",
        "wrong",
        r"n = \d+, .*: wrong at .*: some distances are negative and no weight is.*",
    ),
    "NaN": Edit(
        BY_VERTEX,
        "distance[i, j] = min(distance[i, j], number(to_k + from_k))",
        "via = number(to_k + from_k)\n"
        "            old = distance[i, j]\n"
        "            distance[i, j] = number((old + via - abs(old - via)) / number(2))",
        "wrong",
        r"n = \d+, .*: wrong at .*: NaN, expected .*: some distances are NaN.*",
        more=(('dtypes=("int32", "float32")', 'dtypes=("float32",)'),),
    ),
    "out of bounds": Edit(
        BY_VERTEX,
        "to_k = distance[i, k]",
        "to_k = distance[(i + 1) << 24, k]",
        "broken",
        r"n = 1, one vertex: the kernel .* outside its arrays \(in block \(0, 0\), thread \(0, 0\)\): mine.py:31: .*",
        r"n = \d+, .*: the kernel reads or writes outside its memory \((illegal address|invalid address space)\)",
    ),
    "infinite loop": Edit(
        BY_VERTEX,
        "            distance[i, j] = min(distance[i, j], number(to_k + from_k))",
        "            while distance[i, i] == number(0):\n"
        "                distance[i, j] = min(distance[i, j], number(to_k + from_k))",
        "hung",
        r"n = 1, one vertex: no end within [\d.]+ s, at mine.py:3[34]: an endless loop, or threads that wait for others.*",
        r"n = 1, one vertex: no end within [\d.]+ s: an endless loop, or threads that wait for others.*",
    ),
    "no such name": Edit(
        BY_VERTEX,
        "to_k = distance[i, k]",
        "to_k = distances[i, k]",
        "broken",
        r"n = 1, one vertex: mine.py:31: NameError: name 'distances' is not defined: to_k = distances\[i, k\] \(in block .*\)",
        r"n = 1, one vertex: mine.py:.*distances.*",
    ),
    "compile error": Edit(
        BY_VERTEX,
        "def build(shape: Shape, target: Target) -> Program:",
        "def build(shape: Shape, target: Target) -> Program",
        "broken",
        r"mine.py:18:51: SyntaxError: expected ':': def build\(shape: Shape, target: Target\) -> Program",
    ),
}
