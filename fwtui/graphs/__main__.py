"""`python -P -m fwtui.graphs EXPERIMENT FILE`: make the graph of an experiment (JSON), save it, or print it if FILE is empty."""

from __future__ import annotations

import json
import sys

from fwtui.signals import leave, let_in, on_signals


def main() -> int:
    on_signals(leave)
    let_in()
    # only now what takes time to import: from here on an end is an orderly one
    import msgspec

    from fwtui.experiment import Experiment
    from fwtui.graphs.saving import save
    from fwtui.streams import reported

    # not msgspec's own: a file's name may be no UTF-8
    return reported(
        lambda: save(msgspec.convert(json.loads(sys.argv[1]), Experiment), sys.argv[2]),
        "the graph does not fit into memory; choose a smaller n",
    )


if __name__ == "__main__":
    sys.exit(main())
