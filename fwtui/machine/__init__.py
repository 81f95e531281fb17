"""What this machine is: its hardware, settings, tuned results, and telemetry."""
