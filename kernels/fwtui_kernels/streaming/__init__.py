"""Graphs that are larger than the memory of the GPU."""
