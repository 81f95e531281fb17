"""Out-of-core: graphs that are larger than device memory."""
