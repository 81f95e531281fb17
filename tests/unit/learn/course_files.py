"""Two steps of a course, and their recording."""

from pathlib import Path

from fwtui.sessions.folders import PACKED

BOTH = Path(__file__).parents[2] / "recorded" / f"h200-n4096-naive-blocked{PACKED}"
FIRST = """
title = "A thread for every pair"
kernel = "naive"
text = "One launch for each of {n} k: {time}."
[recorded]
session = "h200-n4096-naive-blocked"
launch = "graph"
[question]
kind = "peak"
"""
SECOND = """
title = "Tiles"
kernel = "katz-kider"
text = "Asks {tile} times less: {before.bandwidth} became {bandwidth}."
afterwards = "{time}, and {phase.rest} of it in the rest."
[recorded]
session = "h200-n4096-naive-blocked"
launch = "graph"
[question]
kind = "speedup"
"""
