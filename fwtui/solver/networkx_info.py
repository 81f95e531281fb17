"""Backend information that NetworkX reads at import time; this module imports nothing."""

from __future__ import annotations

FUNCTIONS = (
    "all_pairs_bellman_ford_path",
    "all_pairs_bellman_ford_path_length",
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "diameter",
    "eccentricity",
    "floyd_warshall",
    "floyd_warshall_numpy",
    "floyd_warshall_predecessor_and_distance",
    "johnson",
    "radius",
    "shortest_path",
    "shortest_path_length",
)


def info() -> dict[str, object]:
    return {
        "backend_name": "fwtui",
        "project": "fwtui",
        "package": "fwtui",
        "short_summary": "Shortest paths between all pairs by Floyd-Warshall kernels, on a GPU where there is one.",
        "functions": {
            name: {"additional_docs": "Of several shortest paths it may be another one; distances are the same."}
            for name in FUNCTIONS
        },
    }
