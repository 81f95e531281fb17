"""Floyd-Warshall small enough to be followed: every relaxation of a kernel's plan, lessons, and a course."""
