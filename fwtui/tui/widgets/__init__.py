"""Widgets and texts that several screens use."""
