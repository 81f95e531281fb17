"""The Telemetry screen: GPU readings over time."""
