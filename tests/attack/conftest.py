"""Attacks use what other tests have: screens and sessions made by hand, hostile words, graph files."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("bad_files", "faults", "unit/graphs", "unit/live")]
