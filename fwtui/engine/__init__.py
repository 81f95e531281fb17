"""Runs the steps of a plan, on the CPU or on a GPU, and verifies the result."""
