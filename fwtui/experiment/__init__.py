"""Experiments: the requests of a user."""
