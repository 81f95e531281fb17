"""What code for graphs on one core and its callers agree on; brings neither numba nor llvmlite."""

TILE = 64
LOW, HIGH, FRACTION, MISSING, ZEROS, EDGES = range(6)  # what a survey of weights tells
