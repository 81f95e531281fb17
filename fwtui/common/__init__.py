"""Errors, text, units, signals, streams, files and child processes, for all other packages."""
