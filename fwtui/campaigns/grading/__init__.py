"""Grading own kernels for a course: the rubric, the points, and the processes that judge."""
