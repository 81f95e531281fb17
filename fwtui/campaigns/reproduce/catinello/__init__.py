"""A. S. Catinello, Parallel Floyd-Warshall, 2023."""
