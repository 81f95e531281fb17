"""The application itself: its start, its end, and pictures of it."""
