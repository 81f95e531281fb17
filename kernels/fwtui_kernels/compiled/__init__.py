"""The adapter to numba.cuda and cuda.core, device intrinsics, and a simulator of numba.cuda in plain Python."""

import os

SIMULATOR = "FWTUI_SIMULATOR"  # environment variable, 1 in a process that simulates GPUs
SIMULATED = os.environ.get(SIMULATOR) == "1"
