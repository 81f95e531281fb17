"""`python -P -m fwtui.measure.graph_process EXPERIMENT FILE`: make a graph, and save it, or print it if FILE is empty."""

from __future__ import annotations

import json
import sys

from fwtui.common.signals import leave, let_in, on_signals


def main() -> int:
    on_signals(leave)
    let_in()
    # slow imports only after signal handling is set up
    import msgspec

    from fwtui.common.streams import reported
    from fwtui.experiment.experiment import Experiment
    from fwtui.measure.save_graph import save

    # not msgspec's decoder: a file's name may not be UTF-8
    return reported(
        lambda: save(msgspec.convert(json.loads(sys.argv[1]), Experiment), sys.argv[2]),
        "the graph does not fit into memory; choose a smaller n",
    )


if __name__ == "__main__":
    sys.exit(main())
