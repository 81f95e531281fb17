"""Session files: written by a recorder, read by anybody, checked, listed and played."""
