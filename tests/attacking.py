"""Seed and size of attacks, which the environment sets, and the marker that repeats one by name.

`make attack SECONDS=3600` runs all of them again and again, each time with another seed (tests/attack/__main__.py).
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

SEED = int(os.environ.get("ATTACK_SEED", "1"))
SIZE = float(os.environ.get("ATTACK_SIZE", "1"))  # times the usual number of cases
# marks an attack that compiles everything again: only `make attack` and `make slow` run it
RARE: Callable[[Any], Any] = pytest.mark.attack if "ATTACK_SEED" in os.environ else pytest.mark.slow


def sized(cases: int) -> int:
    """Return the number of cases, scaled by the size of the attack."""
    return max(1, round(cases * SIZE))


def bounded(cases: int) -> settings:
    """Return Hypothesis' settings for an attack; failing cases are not shrunk, which would take minutes."""
    return settings(
        max_examples=sized(cases),
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def attack(cases: int, **strategies: Any) -> Callable[..., Any]:
    """Return a decorator for a test of `cases` cases from these Hypothesis strategies."""
    return lambda test: pytest.mark.attack(seed(SEED)(bounded(cases)(given(**strategies)(test))))
