"""Other packages' implementations, run, timed and verified like a kernel, but not rungs of the ladder.

Packages are detected without being imported; only the process that runs one loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from fwtui_kernels.plan import Kernel, Shape

PACKAGES = {"numpy": "numpy", "networkx": "networkx", "torch-cpu": "torch", "torch": "torch", "cupy": "cupy"}  # by kernel
RUNGS = ("scipy",)  # of the ladder, that are peers as well


@cache
def peers() -> Mapping[str, Kernel]:
    """Every peer by id, installed or not."""
    from fwtui_kernels.peers import packages

    every = (packages.NUMPY, packages.NETWORKX, *packages.WITH_TORCH, packages.CUPY)
    return {kernel.id: replace(kernel, refuses=refuses(kernel.id)) for kernel in every}


def installed(peer: str) -> bool:
    """Whether the package is installed; it is not imported."""
    return peer in RUNGS or find_spec(PACKAGES[peer]) is not None


def refuses(peer: str) -> Callable[[Shape], str | None]:
    """Why its kernel refuses any graph, if the package is missing."""
    return lambda shape: None if installed(peer) else missing(peer)


def missing(peer: str) -> str:
    """The message if it is not installed."""
    return f"{PACKAGES[peer]} is not installed here; pip install {PACKAGES[peer]}, or leave {peer} out"
