"""The library of recorded sessions."""
