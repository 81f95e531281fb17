"""A live session: its child processes, telemetry, and hardware counters."""
