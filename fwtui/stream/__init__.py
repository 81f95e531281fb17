"""The event stream: its types, their bytes, and the state that they add up to."""
