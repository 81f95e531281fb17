"""Execution of a plan's steps on the CPU or on a GPU, and verification of the result."""
