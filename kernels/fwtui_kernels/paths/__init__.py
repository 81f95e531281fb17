"""Predecessors on a GPU."""
