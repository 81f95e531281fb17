"""Settings of all tests: one folder of compiled kernels, threads that do not spin, rare garbage collection."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pretending import Pretend

from fwtui.common.environment import code_cache, worker_environment
from fwtui.experiment import user_kernel_registry

# numba reads them when it is imported: what one process compiled, tests and workers find
for name in ("NUMBA_CACHE_DIR", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, worker_environment("cpu")[name])

# ranks of MPICH that wait long for a message sleep: by default they would take cores from the tests
os.environ["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"

# a shell starts what it runs in the background with ctrl+c ignored, and children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any machine", settings(), deadline=None)  # a busy machine is not wrong
settings.load_profile("any machine")

os.environ.pop("COLUMNS", None)  # a terminal's width, which tables and help would keep to


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    return Pretend(monkeypatch)


@pytest.fixture(autouse=True)
def _own_kernels_are_forgotten() -> Iterator[None]:
    yield
    user_kernel_registry._user_kernels.clear()


@pytest.fixture
def own_cache(tmp_path: Path) -> str:
    """Return an XDG_CACHE_HOME without measurements, but with the kernels that tests have compiled."""
    kept = tmp_path / "cache" / "fwtui"
    kept.mkdir(parents=True)
    if (folder := code_cache().folder) is not None:
        (kept / "numba").symlink_to(folder.parent)
    return str(kept.parent)


def pytest_collection_finish() -> None:
    """Exempt all modules from garbage collection, which would cost a fifth of the time, as each screen leaves cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 3, 10)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Exempt all objects from the five collections at the end of pytest."""
    gc.freeze()
