"""Analysis of measured numbers: comparisons, limits, occupancy, estimates, and reports."""
