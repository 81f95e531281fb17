"""The interface for programs and notebooks: runs, recorded sessions, and lists of kernels."""
