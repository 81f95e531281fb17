"""Graphs in, canonical distances out: reading, bounding and comparing dense adjacency matrices."""

GRID = 256  # real weights are multiples of 1/256, so that sums are exact in float32 too
