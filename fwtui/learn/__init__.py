"""Floyd-Warshall on graphs small enough to follow: every relaxation of a kernel's plan, lessons, and a course."""
