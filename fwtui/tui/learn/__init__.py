"""The Learn screen: a kernel's plan on a small graph, step by step, the course, and the source."""
