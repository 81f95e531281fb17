"""`python -P -m fwtui.solver JSON`: what commands/solve.py starts."""

from __future__ import annotations

import atexit
import json
import os
import sys

from fwtui.common.exit_codes import WRONG
from fwtui.common.signals import leave, let_in, on_signals


def main() -> int:
    on_signals(leave)
    let_in()
    # slow imports only after signal handling is set up
    import msgspec

    from fwtui.common.streams import reported
    from fwtui.common.text import clean
    from fwtui.solver.starting import Request, start_gpu

    def work() -> None:
        # not msgspec's decoder: a file's name may not be UTF-8
        request = msgspec.convert(json.loads(sys.argv[1]), Request)
        start = start_gpu(request)
        from fwtui.solver.command import carry_out

        carry_out(request, start)

    try:
        return reported(work, "the distances do not fit into memory; choose a smaller graph")
    except Exception as error:
        if type(error).__name__ == "NegativeCycleError":  # SciPy's, which is imported only where it is needed
            print(f"fwtui: {clean(str(error))}; shortest paths do not exist", file=sys.stderr)
            return WRONG
        raise


if __name__ == "__main__":
    from fwtui.common.streams import flushed

    code = flushed(main())
    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)  # taking numba apart, module by module, would last a quarter of a second
