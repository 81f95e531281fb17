"""How much memory a run leaves to everything else."""

from __future__ import annotations

KEPT_FREE = 1 << 28  # bytes, of the host's memory and of a GPU's
