"""Readings of the host and the GPU. Only the sampler process imports what talks to a driver."""
