"""What every screen has: the top bar, telemetry, the log line, the transport of a recording, dialogs, and shared keys."""
