"""Runs a plan with a clock around it. Only the worker imports this package."""
