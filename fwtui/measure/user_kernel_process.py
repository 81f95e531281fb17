"""`python -P -m fwtui.measure.user_kernel_process`: load a user's kernel and return its description or its plan as data.

Requests on stdin, replies on stdout (fwtui.experiment.user_kernel_registry). The output that the file prints is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from fwtui.analysis.plan_frames import PlanFrames
from fwtui.common.child_protocol import Parent, serve
from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import Settled, kernel_named
from fwtui.experiment.user_kernel_registry import MAX_STEPS, KernelReply, KernelRequest, install, path_of
from fwtui.stream import events
from fwtui_kernels.own import UserKernelError, check, describe_error, files_of, fingerprint, load, text_of
from fwtui_kernels.plan import Kernel, Shape

MAX_SOURCE = 128 * 1024  # characters of a kernel's source in a session
SOURCE_AT_ONCE, LINES_AT_ONCE = 8 * 1024, 200  # limits of one event
_loaded: dict[str, str] = {}  # fingerprints by name


def register_here(name: str, path: str, code: str) -> None:
    """Load the file into this process, a worker, unless it is loaded already; do nothing without a path. Raises Refused.

    `code` is the fingerprint of the requested file: a file that has changed since then is rejected.
    """
    if not path:
        return
    file = Path(path)
    try:
        found = fingerprint(file)
    except OSError as error:
        raise Refused(f"{sanitise(file.name)} cannot be read: {os_error_reason(error)}; choose the kernel again") from None
    if code and found != code:
        raise Refused(f"{sanitise(file.name)} was changed after this run was requested; start the run again")
    if _loaded.get(name) == found and path_of(name) == path:
        return
    try:
        install(load(file, name), file)
    except UserKernelError as wrong:
        raise Refused(sanitise(str(wrong))) from None
    _loaded[name] = found


def resolve_kernel(experiment: Settled, path: str) -> Kernel:
    """Return the experiment's kernel in a worker, from that file if there is one. Raises Refused, also for open settings."""
    register_here(experiment.kernel, path, experiment.code)
    experiment.check()
    return kernel_named(experiment.kernel)


def describe_user_error(error: BaseException, name: str) -> str:
    """Describe the mistake in a user's kernel file in one sentence."""
    path = path_of(name)
    return sanitise(describe_error(error, Path(path))) if path else ""


def recorded_plan(kernel: Kernel, shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield the plan in parts, each the fields of an event; nothing for a plan that is too long to record."""
    frames = PlanFrames.of(kernel, shape)
    while not frames.process() and not frames.hopeless:
        pass
    steps = frames.plan_steps() if frames.complete else ()
    for first in range(0, len(steps), events.PLAN_STEPS):
        yield {"of": len(steps), "steps": steps[first : first + events.PLAN_STEPS]}


def source_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the kernel's files in parts, each the fields of an event, up to a limit; tabs become spaces."""
    left = MAX_SOURCE
    for file in files_of(path):
        lines = text_of(file).expandtabs(4).splitlines()
        part: list[str] = []
        first = 1
        for number, line in enumerate(lines, 1):
            left -= len(line) + 1
            if left < 0:
                part.append("(the rest was not recorded)")
                break
            part.append(line)
            if sum(map(len, part)) > SOURCE_AT_ONCE or len(part) == LINES_AT_ONCE:
                yield {"file": file.name, "first": first, "lines": tuple(part)}
                first, part = number + 1, []
        if part:
            yield {"file": file.name, "first": first, "lines": tuple(part)}
        if left < 0:
            return


def reply_to(request: KernelRequest) -> KernelReply:
    """Return the reply; never raises for mistakes in the file."""
    path = Path(request.path)
    with suppress(Exception):  # a missing import of the file is reported below
        return _found(request, load(path, request.name, for_plan=True))
    try:
        return _found(request, load(path, request.name))
    except Exception as error:
        return KernelReply(wrong=describe_error(error, path))


def _found(request: KernelRequest, kernel: Kernel) -> KernelReply:
    if request.shape is None:
        check(kernel, Path(request.path))
        values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
        return KernelReply(kernel={name: msgspec.to_builtins(value) for name, value in values.items() if not callable(value)})
    return KernelReply(steps=tuple(islice(kernel.plan(request.shape, request.stepwise), MAX_STEPS)))


def _answer(request: KernelRequest, parent: Parent) -> None:
    try:
        parent.send(reply_to(request))
    except (TypeError, msgspec.MsgspecError) as error:
        parent.send(KernelReply(wrong=f"{Path(request.path).name}: {error}"))


if __name__ == "__main__":
    serve(KernelRequest, _answer, quiet=True)
