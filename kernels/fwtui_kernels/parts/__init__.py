"""Device functions and plans that several rungs are built from."""
