"""How much memory a run leaves for everything else."""

KEPT_FREE = 1 << 28  # bytes, of the host's memory and of a GPU's
