"""Watch a user kernel: check it at each save."""
