"""Measures the limits of a device."""
