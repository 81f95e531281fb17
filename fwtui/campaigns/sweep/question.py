"""Questions that a sweep answers, each with its axes on GPUs and on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SweepQuestion(NamedTuple):
    """A question, and for each backend the values of the form."""

    text: str
    texts: Mapping[str, Mapping[str, str]]


QUESTIONS: Mapping[str, SweepQuestion] = {
    "density": SweepQuestion(
        "from which density on does a dense kernel win?",
        {
            "cuda": {"kernel": "sparse,look-ahead", "n": "8192", "density": "0.003%,0.006%,0.012%,0.025%,0.05%,0.1%,0.2%"},
            "cpu": {"kernel": "sparse-cpu,tiled-cpu", "n": "2048", "density": "0.012%,0.025%,0.05%,0.1%,0.2%,0.4%,0.8%"},
        },
    ),
    "kind": SweepQuestion(
        "on which kind of graph does a kernel for sparse graphs win?",
        {
            "cuda": {"kernel": "sparse,look-ahead", "n": "8192", "kind": "all", "density": "0.05%"},
            "cpu": {"kernel": "sparse-cpu,tiled-cpu", "n": "2048", "kind": "all", "density": "0.2%"},
        },
    ),
}
