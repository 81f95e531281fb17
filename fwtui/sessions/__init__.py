"""Session files: written by a recorder, read, checked, listed and played."""
