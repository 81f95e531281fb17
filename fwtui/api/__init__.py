"""What a program or a notebook gets: runs, recorded sessions, and lists of kernels."""
