"""The five documents, one file each: what is run for it, its claims, how each is judged, and why it may not hold here."""
