"""Few combinations of many choices, in which every value occurs, or every two values of different choices meet."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any


def covering(
    choices: Mapping[Any, Sequence[Any]], strength: int = 2, possible: Callable[[dict[Any, Any]], bool] = bool
) -> list[dict[Any, Any]]:
    """Choose possible combinations greedily: each has the most sets of `strength` values that are not covered yet."""
    names = list(choices)
    rows = [row for values in product(*choices.values()) if possible(row := dict(zip(names, values, strict=True)))]
    together = min(strength, len(names))
    meetings = [set(combinations(row.items(), together)) for row in rows]
    left = set().union(*meetings)
    chosen: list[dict[Any, Any]] = []
    while left:
        best = max(range(len(rows)), key=lambda at: len(left & meetings[at]))
        chosen.append(rows[best])
        left -= meetings[best]
    return chosen
