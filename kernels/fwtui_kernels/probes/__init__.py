"""Microbenchmarks of the peak rates of a device."""
