"""The GPU, opened once for each file."""

from typing import Any

import pytest


@pytest.fixture(scope="module")
def engine() -> Any:
    from fwtui.engine.cuda_engine import CudaEngine

    return CudaEngine()
