"""What makes a test an attack: a seed and a size, which the environment sets, and a name by which it is repeated.

`make attack SECONDS=3600` runs all of them again and again, each time with another seed (tests/attack/__main__.py).
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

SEED = int(os.environ.get("ATTACK_SEED", "1"))
SIZE = float(os.environ.get("ATTACK_SIZE", "1"))  # times the usual number of cases


def sized(cases: int) -> int:
    """That many cases of an attack of size 1."""
    return max(1, round(cases * SIZE))


def bounded(cases: int) -> settings:
    """Hypothesis' settings for an attack. Shrinking takes minutes; what fell is printed as it is."""
    return settings(
        max_examples=sized(cases),
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def attack(cases: int, **strategies: Any) -> Callable[..., Any]:
    """A test of so many cases, drawn from these strategies of Hypothesis."""
    return lambda test: pytest.mark.attack(seed(SEED)(bounded(cases)(given(**strategies)(test))))
