"""Sweeps over many experiments: axes, their grid, running it within a time limit, and findings."""
