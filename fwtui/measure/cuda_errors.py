"""Readable descriptions of CUDA driver errors."""

from __future__ import annotations

import re

_MEANING = {
    "ILLEGAL_ADDRESS": "reads or writes outside its memory (illegal address)",
    "INVALID_ADDRESS_SPACE": "reads or writes outside its memory (invalid address space)",
    "MISALIGNED_ADDRESS": "reads or writes several cells at once that do not begin at a multiple of their size (misaligned)",
    "LAUNCH_TIMEOUT": "takes longer than the system allows (launch timeout)",
    "LAUNCH_OUT_OF_RESOURCES": "requests more registers or threads than a block may have (out of resources)",
    "INVALID_VALUE": "requests a block or a grid that this GPU does not support (invalid value)",
    "ILLEGAL_INSTRUCTION": "executed an instruction that this GPU does not support (illegal instruction)",
    "HARDWARE_STACK_ERROR": "overflowed its stack (hardware stack error)",
    "OUT_OF_MEMORY": "needs more memory than the GPU has left (out of memory)",
    "LAUNCH_FAILED": "failed while it ran (launch failed)",
}


def describe_kernel_fault(text: str) -> str:
    """Describe the fault of the kernel from the text of an error; empty if the text has no driver error name."""
    named = re.search(r"CUDA_ERROR_([A-Z_]+)", text)
    if named is None:
        return ""
    return _MEANING.get(named[1]) or f"failed on the GPU ({named[1].replace('_', ' ').lower()})"


def describe_start_failure(text: str) -> str:
    """Extract the reason why CUDA does not start from the text of Numba's error."""
    return re.sub(r"^Error at driver init:|[\s:.]+$", "", " ".join(text.split())).strip()
