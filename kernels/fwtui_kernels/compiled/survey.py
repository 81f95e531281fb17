"""What compiled code for graphs and its callers agree on; brings neither numba nor llvmlite."""

TILE = 64
LOW, HIGH, FRACTION, MISSING, ZEROS, EDGES = range(6)  # what a survey of weights tells
NONE = -9999  # no predecessor, as in scipy.sparse.csgraph
