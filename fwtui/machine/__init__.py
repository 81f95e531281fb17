"""This machine: its hardware, settings, tuned results, and telemetry."""
