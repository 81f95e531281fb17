"""How much memory a run leaves to everything else."""

KEPT_FREE = 1 << 28  # bytes, of the host's memory and of a GPU's
