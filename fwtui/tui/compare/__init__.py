"""The Compare screen: runs against a baseline."""
