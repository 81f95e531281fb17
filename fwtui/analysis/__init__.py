"""What measured numbers mean: comparisons, limits, occupancy, estimates, and reports."""
