"""The only way to numba.cuda, what it compiles from, and a simulator of it in plain Python."""

import os

SIMULATOR = "FWTUI_SIMULATOR"  # an environment variable, which is 1 in a process whose GPUs are simulated
SIMULATED = os.environ.get(SIMULATOR) == "1"
