"""Path of the modules that attacks share with other tests: made-up sessions, hostile strings and graph files."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("bad_files", "faults", "unit/graphs", "unit/kernels", "unit/live")]
