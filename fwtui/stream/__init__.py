"""The event stream: its types, their encoding, and the state built from them."""
