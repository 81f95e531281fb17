"""Many experiments at once: axes, the grid they span, running it within a time, and what its results say."""
