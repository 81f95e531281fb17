"""The only way to numba.cuda, and what it compiles from: intrinsics with plain-Python twins."""
