"""The five documents, one file each: its runs, its claims, how each is judged, and why it may not hold here."""
