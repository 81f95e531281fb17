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

    from fwtui.errors import Refused
    from fwtui.experiment import Experiment
    from fwtui.graphs.saving import save
    from fwtui.streams import ready_streams, unwritten
    from fwtui.text import clean

    ready_streams()
    try:
        # not msgspec's own: a file's name may be no UTF-8
        save(msgspec.convert(json.loads(sys.argv[1]), Experiment), sys.argv[2])
        sys.stdout.flush()
    except Refused as refusal:
        print(f"fwtui: {clean(str(refusal))}", file=sys.stderr)
        return 2  # as the command line says it
    except MemoryError:
        print("fwtui: the graph does not fit into memory; choose a smaller n", file=sys.stderr)
        return 2
    except OSError as error:
        return unwritten(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
