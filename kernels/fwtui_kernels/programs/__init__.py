"""Base programs of each backend: memory, launches, resources."""
