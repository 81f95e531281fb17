"""Timed runs of a plan. Only the worker imports this package."""
