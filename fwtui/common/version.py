"""The version of fwtui, below every package that prints or records it."""

__version__ = "0.2.0"
