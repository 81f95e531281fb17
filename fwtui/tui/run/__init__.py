"""One run at a time, live and in a recording."""
