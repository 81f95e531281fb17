"""Mistakes in threads, memory and algorithm, each planted in a correct kernel, and variants that stay correct."""

from __future__ import annotations

from pathlib import Path

from data.broken_kernels.edits import BLOCKED, BY_VERTEX, FOLDER, Edit

import fwtui_kernels

KERNELS = Path(fwtui_kernels.__file__).parent
PHASES = str(KERNELS / "examples" / "three_phases.py")
TWO = str(KERNELS / "k31_two_matrices.py")
_PIVOT = """        i, j = int32(p * tile + y), int32(p * tile + x)
        own[y, x] = distance[i, j]
        cuda.syncthreads()
"""
_STEP = """            via = number(own[y, k] + own[k, x])  # row k and column k do not change in step k
            if via < own[y, x]:
                own[y, x] = via
"""
_SOLVED = "        solved[y, x] = distance[p * tile + y, p * tile + x]\n        cuda.syncthreads()\n"
_LOOP = f"        for k in range(tile):\n{_STEP}            cuda.syncthreads()\n"
_LOADED = "        to[y, x] = distance[i, p * tile + x]\n"
_AFTER = "        after[y, x] = distance[p * tile + y, j]\n"
_RELAXED = "distance[i, j] = min(distance[i, j], number(to_k + from_k))"
_CUT_OFF = "distance[i, j] = min(distance[i, j], number(int32(to_k + from_k)))"
_RACES = r"n = \d+.*: it races: mine\.py:\d+ `.*` (reads what|writes where) mine\.py:\d+ `.*` of thread \(\d, \d\) "
_RACES += "writes in shared memory; no barrier between.*"
_APART = r"n = \d+.*: of the 16 threads of block \(\d, \d\) \d+ wait at mine\.py:\d+ and \d+ "
_UNWRITTEN = r"n = 5.*: mine\.py:\d+ reads shared memory that no thread has written; wrong at row .*"
_ON_THE_CYCLE = r"n = 11, one cycle through all vertices: wrong at row .*"
_WRONG = r"n = \d+.*: wrong at row .*"


def _edit(file: str, old: str, new: str, outcome: str, simulated: str, *more: tuple[str, str]) -> Edit:
    return Edit(file, old, new, outcome, simulated, more=more)


PLANTED = {
    "pivot without a first barrier": _edit(PHASES, _PIVOT, _PIVOT.replace("        cuda.syncthreads()\n", ""), "racy", _RACES),
    "pivot without a barrier for each k": _edit(PHASES, _LOOP, f"        for k in range(tile):\n{_STEP}", "racy", _RACES),
    "panels without a first barrier": _edit(PHASES, _SOLVED, _SOLVED.replace("        cuda.syncthreads()\n", ""), "racy", _RACES),
    "stored where others still read": _edit(
        PHASES, "        distance[i, j] = best\n", "        to[y, x] = best\n        distance[i, j] = to[y, x]\n", "racy", _RACES
    ),
    "all threads of a row store to one cell": _edit(PHASES, _LOADED, _LOADED.replace("[y, x]", "[y, 0]"), "wrong", _UNWRITTEN),
    "a running minimum of all threads in one cell": _edit(
        PHASES,
        "            best = min(best, number(to[y, k] + after[k, x]))\n",
        "            to[y, k] = number(to[y, k] + after[k, x])\n            best = min(best, to[y, k])\n",
        "racy",
        _RACES,
    ),
    "barrier for some threads": _edit(
        PHASES,
        _PIVOT,
        _PIVOT.replace("        cuda.syncthreads()\n", "        if x > y:\n            cuda.syncthreads()\n"),
        "wrong",
        _APART + r"wait at mine\.py:\d+; all threads of a block must reach the same barrier.*",
    ),
    "a barrier in each branch": _edit(
        PHASES,
        _PIVOT,
        _PIVOT.replace(
            "        cuda.syncthreads()\n",
            "        if x % 2:\n            cuda.syncthreads()\n        else:\n            cuda.syncthreads()\n",
        ),
        "wrong",
        _APART + r"wait at mine\.py:\d+; all threads of a block must reach the same barrier.*",
    ),
    "threads that end before a barrier": _edit(
        PHASES,
        _PIVOT,
        _PIVOT.replace("        cuda.syncthreads()\n", "        if i > j:\n            return\n        cuda.syncthreads()\n"),
        "wrong",
        _APART + r"have ended; all threads of a block must reach the same barrier.*",
    ),
    "as many barriers as a thread's column": _edit(
        PHASES, f"        for k in range(tile):\n{_STEP}", f"        for k in range(x):\n{_STEP}", "wrong", _APART + ".*"
    ),
    "shared memory that is never loaded": _edit(PHASES, _LOADED, "", "wrong", _UNWRITTEN),
    "a column of a tile that is not loaded": _edit(PHASES, _AFTER, f"        if x:\n    {_AFTER}", "wrong", _UNWRITTEN),
    "blocks that wait for none and read what another writes": _edit(
        BY_VERTEX,
        "            to_k = distance[i, k]\n",
        "            if j == 0:\n                column[i, 0] = distance[i, k]\n            to_k = column[i, 0]\n",
        "racy",
        r"n = 3.*: it races; mine\.py:3\d.* reads what mine\.py:3\d.* of .* writes in .*; wrong at row .*",
        ("def relax(distance, k):", "def relax(distance, column, k):"),
        ("lambda args: grid)})", "lambda args: grid, lambda args: (0, 1))}, scratch=[(shape.n, 1)])"),
    ),
    "row panels alone": _edit(
        BLOCKED,
        "lambda args: (others, 2)",
        "lambda args: (others, 1)",
        "wrong",
        r".*it began in panels of round 1 .*: as if rows 4-7, columns 0-3 were forgotten",
    ),
    "the wrong one of two matrices": _edit(
        TWO,
        "threads, buffers=by_vertex.in_turn,",
        "threads, buffers=lambda args: (0, 1) if args[0] == 1 else by_vertex.in_turn(args),",
        "wrong",
        _WRONG + "it began in round 2 .*",
    ),
    "both directions of an edge": _edit(
        BY_VERTEX, _RELAXED, f"{_RELAXED}\n            distance[j, i] = distance[i, j]", "racy", r"n = 3.*wrong at row .*"
    ),
    "the longer of two paths": _edit(BY_VERTEX, _RELAXED, _RELAXED.replace("min(", "max("), "racy", r"n = 3.*wrong at row .*"),
    "the last column left out": _edit(BY_VERTEX, "j < distance.shape[1]", "j < distance.shape[1] - 1", "wrong", _WRONG),
    "a distance of 20 is no path": _edit(
        BY_VERTEX, _RELAXED, f"if to_k < number(20):\n                {_RELAXED}", "wrong", _WRONG
    ),
    "the pivot in place of a panel": _edit(
        PHASES, _LOADED, _LOADED.replace("[i, ", "[p * tile + y, "), "wrong", _WRONG + "it began in remainder of round 1 .*"
    ),
    "a path of 9999 is none": _edit(
        BY_VERTEX,
        f"            {_RELAXED}",
        f"            if to_k + from_k < 9999:\n                {_RELAXED}",
        "wrong",
        _ON_THE_CYCLE,
    ),
    "fractions cut off": _edit(
        BY_VERTEX,
        '"int32", "float32"',
        '"float32",',
        "wrong",
        _ON_THE_CYCLE,
        (_RELAXED, f"if to_k + from_k < 1e9:\n                {_CUT_OFF}"),
    ),
    "whole numbers of 16 bits": _edit(
        BY_VERTEX,
        "number(to_k + from_k)",
        "number(np.int16(min(to_k, 999) + min(from_k, 999)))",
        "wrong",
        r".*wrong at row .*",
        ("from typing import Any", "from typing import Any\n\nimport numpy as np"),
    ),
    "sums of what is not there": _edit(BY_VERTEX, "number(to_k + from_k)", "number(to_k * from_k)", "wrong", _WRONG),
}


def _right() -> dict[str, str]:
    """Return sources of correct kernels: fixed tiles and threads, early returns, atomics, several launches, lanes, padding."""
    phases, vertex, blocked = Path(PHASES).read_text(), (FOLDER / BY_VERTEX).read_text(), (FOLDER / BLOCKED).read_text()
    guard = "        if i < distance.shape[0] and j < distance.shape[1]:\n"
    early = "        if i >= distance.shape[0] or j >= distance.shape[1]:\n            return\n        if True:\n"
    atomic = "cuda.atomic.min(distance, (i, j), number(to_k + from_k))"
    found: dict[str, str] = {}
    for side in (1, 2, 4, 8, 16, 32):
        fixed = vertex.replace('side = 4 if target.backend == "simulator" else 16', f"side = {side}")
        found[f"{side} x {side} threads"] = fixed
        found[f"{side} x {side} threads that return early"] = fixed.replace(guard, early)
        found[f"{side} x {side} threads, atomic"] = fixed.replace(_RELAXED, atomic).replace('("int32", "float32")', '("int32",)')
    for tile in (4, 8, 16):
        ours = phases.replace(
            "tiles=(8, 16, 32), default_tile=32, simulator_tiles=(4, 8)", f"tiles=({tile},), default_tile={tile}"
        )
        fixed = ours.replace("number, tile = NUMBER[shape.dtype], shape.tile", f"number, tile = NUMBER[shape.dtype], {tile}")
        found[f"fixed tile {tile}"] = fixed
        found[f"fixed tile {tile}, padded rows"] = (
            fixed.replace("(tile, tile), number", "(tile, tile + 1), number")
            .replace("    @jit\n    def pivot", "    wide = tile + 1\n\n    @jit\n    def pivot")
            .replace("(tile, tile + 1), number", "(tile, wide), number")
        )
        found[f"fixed tile {tile}, one barrier more"] = fixed.replace(
            "        distance[i, j] = own[y, x]\n", "        cuda.syncthreads()\n        distance[i, j] = own[y, x]\n"
        )
        ours = blocked.replace("tiles=(8, 16, 32),", f"tiles=({tile},), simulator_tiles=(),")
        found[f"two lanes, tile {tile}"] = ours.replace("default_tile=32", f"default_tile={tile}")
    return found


RIGHT = _right()
