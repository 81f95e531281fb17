"""What the driver's errors mean, for people."""

from __future__ import annotations

import re

_MEANING = {
    "ILLEGAL_ADDRESS": "reads or writes outside its memory (illegal address)",
    "INVALID_ADDRESS_SPACE": "reads or writes outside its memory (invalid address space)",
    "MISALIGNED_ADDRESS": "reads or writes several cells at once that do not begin at a multiple of their size (misaligned)",
    "LAUNCH_TIMEOUT": "takes longer than the system allows (launch timeout)",
    "LAUNCH_OUT_OF_RESOURCES": "asks for more registers or threads than a block may have (out of resources)",
    "INVALID_VALUE": "asks for a block or a grid that this GPU does not have (invalid value)",
    "ILLEGAL_INSTRUCTION": "came to an instruction that this GPU does not have (illegal instruction)",
    "HARDWARE_STACK_ERROR": "overflowed its stack (hardware stack error)",
    "OUT_OF_MEMORY": "needs more memory than the GPU has left (out of memory)",
    "LAUNCH_FAILED": "failed while it ran (launch failed)",
}


def describe_kernel_fault(words: str) -> str:
    """From an error's words what the kernel did; empty if the driver did not name an error."""
    named = re.search(r"CUDA_ERROR_([A-Z_]+)", words)
    if named is None:
        return ""
    return _MEANING.get(named[1]) or f"failed on the GPU ({named[1].replace('_', ' ').lower()})"


def describe_start_failure(words: str) -> str:
    """From an error's words why CUDA does not start: numba's, without its headings."""
    return re.sub(r"^Error at driver init:|[\s:.]+$", "", " ".join(words.split())).strip()
