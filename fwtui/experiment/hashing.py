"""The generator's arithmetic: one counter-based hash per cell, the same bits from NumPy, a CPU and a GPU.

splitmix64's finaliser (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) over a key and
the cell's coordinates, so the graph on n vertices is the corner of the graph on 2n. Every operand is a uint64: mixed with
a signed integer, NumPy would convert to float64 and Numba to int64.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_27, _30, _31, _32, _40 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(40)
RANDOM, GRAPH_GRID, ROAD, SMALL_WORLD, POWER_LAW = range(5)  # kinds of graphs
MOTORWAY = np.uint64(8)  # streets between two of its junctions
_HUBS = np.uint64(1 << 50)  # (2 x 2^24)^2: vertices i and j, from 1, are linked with probability 2 / sqrt(i j)


def functions(compiled: Callable[[Any], Any] = lambda function: function) -> SimpleNamespace:
    """The generator's functions, each passed through `compiled` (numba.njit, cuda.jit, or nothing for NumPy)."""

    @compiled
    def mix(z):
        z = (z ^ (z >> _30)) * _FIRST
        z = (z ^ (z >> _27)) * _SECOND
        return z ^ (z >> _31)

    @compiled
    def graph_key(seed):
        return mix(seed + GOLDEN)

    @compiled
    def cell_hash(key, i, j):
        return mix(key + GOLDEN * ((i << _32) | j))

    @compiled
    def toss(hashed, threshold):  # threshold: probability x 2^32, 2^32 included
        return (hashed >> _32) < threshold

    @compiled
    def scaled(hashed, span):  # uniform in 0 .. span - 1, without the division of a remainder
        return ((mix(hashed ^ GOLDEN) >> _32) * span) >> _32

    @compiled
    def potential(key, i, span):
        return ((mix(key ^ (i * GOLDEN)) >> _32) * span) >> _32

    @compiled
    def cell_index(i, j, n, forced):  # counts only cells that are neither diagonal nor, with forced = 1, i -> i + 1
        return i * (n - ONE - forced) + (j + n - i) % n - ONE - forced

    @compiled
    def shuffle(x, key, half):  # four Feistel rounds over 2 x half bits: a bijection for any hash
        mask = (ONE << half) - ONE
        left = x >> half
        right = x & mask
        left = left ^ (cell_hash(key, ZERO, right) & mask)
        right = right ^ (cell_hash(key, ONE, left) & mask)
        left = left ^ (cell_hash(key, TWO, right) & mask)
        right = right ^ (cell_hash(key, THREE, left) & mask)
        return (left << half) | right

    @compiled
    def aligned(i, j, stride, across):  # i and j are `stride` cells apart in a row or column
        along = ((i + stride == j) & (j % across >= stride)) | ((j + stride == i) & (i % across >= stride))
        return along | (i + stride * across == j) | (j + stride * across == i)

    @compiled
    def junction(i, across):
        return (i % across % MOTORWAY == ZERO) & (i // across % MOTORWAY == ZERO)

    @compiled
    def linked(kind, key, threshold, i, j, n, across):  # symmetric: both directions or none
        hashed = cell_hash(key, i, j) ^ cell_hash(key, j, i)
        if kind == SMALL_WORLD:
            ahead = (j + n - i) % n
            return (ahead <= TWO) | (ahead + TWO >= n) | toss(hashed, threshold)
        if kind == POWER_LAW:
            share = hashed >> _40
            return share * share < _HUBS // ((i + ONE) * (j + ONE))
        street = aligned(i, j, ONE, across) & toss(hashed, threshold)
        if kind == ROAD:
            return street | (aligned(i, j, MOTORWAY, across) & junction(i, across) & junction(j, across))
        return street

    return SimpleNamespace(
        mix=mix, graph_key=graph_key, cell_hash=cell_hash, toss=toss, scaled=scaled, potential=potential, cell_index=cell_index,
        shuffle=shuffle, linked=linked,
    )  # fmt: skip


PLAIN = functions()
