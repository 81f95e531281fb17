"""This machine: its hardware, settings, and telemetry."""
