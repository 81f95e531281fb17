"""Widgets and words that several screens use."""
