"""`python -P -m fwtui.solver.compile_code`: compiles the code for graphs of everyday size and keeps it; see solver/warm.py."""

from __future__ import annotations

import fcntl
import resource

from fwtui.solver import warm

_MOST_SECONDS = 300  # of a processor: whatever goes wrong ends


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    with open(warm.path().with_suffix(".lock"), "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process is at it
            return
        if warm.load() is None:
            warm.compile_and_keep()


if __name__ == "__main__":
    main()
