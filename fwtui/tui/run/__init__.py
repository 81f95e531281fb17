"""The Run screen: one run at a time, live or in a replay."""
