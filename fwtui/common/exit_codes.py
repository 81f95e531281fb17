"""Exit codes of the program and of its child processes."""

from __future__ import annotations

OK, WRONG, USAGE, NO_GPU, WORKER_DIED, NOT_RECORDED = range(6)
SIGNALLED = 128  # plus the number of the signal that ended the process
EXIT_CODES = (
    "exit codes: 0 ok, 1 wrong result or none, damaged file, output that cannot be written, error in the dashboard or failed "
    "check (such as --fail-slower), 2 usage or too little memory, 3 no GPU, 4 worker died, 5 recording incomplete, "
    "128+n ended by signal n"
)
