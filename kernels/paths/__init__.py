"""Predecessors and paths."""
