"""Measures what a device can do at most."""
