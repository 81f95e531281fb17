"""What programs in Numba's simulator import that answer case after case (in_simulator.py starts them)."""

import importlib.util
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fwtui_kernels.plan import Kernel


def kernel_in(path: str) -> Kernel:
    """The kernel that a file defines, which may import what lies beside it."""
    sys.path.append(str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[loaded.__name__] = loaded
    spec.loader.exec_module(loaded)
    return loaded.KERNEL


def tell(found: Callable[[dict[str, Any]], object]) -> None:
    """Answer every case on stdin with one line of JSON."""
    for line in sys.stdin:
        random.seed(1)  # whatever was asked before
        print(json.dumps(found(json.loads(line))), flush=True)
