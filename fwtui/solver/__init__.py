"""Solves a graph: shortest distances and paths."""
