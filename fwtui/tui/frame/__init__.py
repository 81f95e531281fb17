"""The common parts of all screens: top bar, telemetry, log line, transport of a recording, dialogs and shared keys."""
