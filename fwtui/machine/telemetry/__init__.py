"""Telemetry samples of the host and the GPU. Only the sampler process imports driver libraries."""
