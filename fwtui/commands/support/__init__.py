"""Code shared by commands: options, progress on stderr, and the longer parts of single commands."""
