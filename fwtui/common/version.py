"""The versions of fwtui and of its JSON, below every package that prints or records them."""

__version__ = "0.2.0"
# incremented if a field of the JSON of run, replay and solve is renamed, removed or redefined, not if one is added
RESULT_VERSION = 1
