"""What tests and lessons hold plans against: the order of steps, and a plan carried out by NumPy."""
