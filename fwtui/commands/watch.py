"""Compile, check, test and benchmark your kernel every time you save it.

Each result is printed as soon as it is available.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from threading import Event
from typing import Any

from msgspec import structs

from fwtui.commands.support.printing import folded
from fwtui.commands.support.recording_options import add_samples_option, sampling_mode
from fwtui.commands.support.stderr_reporter import print_message, show_progress
from fwtui.commands.support.user_kernel_options import confirm_trust
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import NO_GPU, OK, SIGNALLED, WRONG
from fwtui.common.process_limits import check_process_list
from fwtui.common.signals import Stopped, on_signals, stop
from fwtui.common.text import sanitise
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.fields import FIELDS
from fwtui.experiment.user_kernel_registry import find_kernel_file, name_for
from fwtui.learn.course import load_course, prompts_of
from fwtui.learn.prompts import Prompted
from fwtui.live.session import Live
from fwtui.live.watch_events import (
    NOTE,
    VERDICT,
    Activity,
    CheckEnd,
    CheckStart,
    Report,
    Superseded,
    WatchUpdate,
    parse_architecture,
)
from fwtui.live.watch_loop import DEFAULT_N, Benchmarks, WatchLoop, WatchRequest, resolve_watch_request
from fwtui.machine.device_choice import settle_here
from fwtui.stream.kernel_tests import Finding, repeated, repeated_text, verdict
from fwtui_kernels.own import source_of

VERDICTS = {None: "NOT TESTED", True: "RIGHT", False: "NOT RIGHT"}
MARKS = {None: " ", True: "+", False: "!"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "file of your kernel: .py, or .cu (CUDA C++) with its plan in a .cu.py; `fwtui new` writes both"
    parser.add_argument("file", metavar="FILE", help=about)
    about = "also test and time a graph with this many vertices (default: 512; none in the simulator)"
    parser.add_argument("-n", metavar="COUNT", help=about)
    parser.add_argument(
        "--tile", metavar="SIZE", help="side of a tile (default: that of the kernel; in the simulator a small one)"
    )
    about = "device: a CUDA device index, simulator, or auto (default)"
    parser.add_argument("--device", default="auto", metavar="DEVICE", help=about)
    about = "architecture to compile for, such as sm_90 (default: that of this GPU, else sm_90)"
    parser.add_argument("--for", dest="architecture", metavar="ARCH", help=about)
    about = "show the prompts of the course, from a naive kernel to tiles, and the next one after each save"
    parser.add_argument("--course", action="store_true", help=about)
    about = "check once; exit code 0 if the kernel is right, 1 if it is wrong or broken, 3 if nothing could be tested here"
    parser.add_argument("--once", action="store_true", help=about)
    about = "with --once: print one JSON object with every finding, for a program that grades kernels"
    parser.add_argument("--json", action="store_true", help=about)
    add_samples_option(parser)
    about = "run the file without asking for confirmation, and trust its folder permanently"
    parser.add_argument("--trust", action="store_true", help=about)


def execute(args: argparse.Namespace) -> int:
    if args.json and (not args.once or args.course):
        raise Refused("--json prints the findings of one check; add --once, and omit --course")
    check_process_list()
    path = find_kernel_file(args.file)
    capability = parse_architecture(args.architecture) if args.architecture else None
    n, tile = (_count(args, name) for name in ("n", "tile"))
    request = resolve_watch_request(path, name_for(path), args.device, capability, n, tile)
    if DeviceId.parse(args.device).backend == "cuda":
        settle_here(Experiment(kernel="naive", n=16, device=args.device))  # raises Refused if the GPU does not exist
    prompted = Prompted(prompts_of(load_course())) if args.course else None
    confirm_trust(path, args.trust)
    ended = Event()
    on_signals(stop)
    code, updates_of_save = OK, list[WatchUpdate]()
    if prompted is not None and not args.once:
        print("\n".join(_prompt(prompted)), flush=True)
    times = Benchmarks(request, lambda: Live(telemetry_hz=0.0), samples=sampling_mode(args))
    with closing(WatchLoop(request, times)) as sitting:
        try:
            with closing(sitting.run(ended, args.once)) as updates:
                for update in updates:
                    if isinstance(update, CheckStart):
                        updates_of_save.clear()
                    updates_of_save.append(update)
                    if not args.json:
                        _show(update, request, updates_of_save)
                    before = prompted.place.number if prompted is not None else 0
                    if prompted is not None:
                        prompted.update(update)
                    if isinstance(update, CheckEnd):
                        if prompted is not None:
                            print("\n".join(_prompt(prompted, before)), flush=True)
                        code = OK if update.right else WRONG if update.tested else NO_GPU
                        if not args.once:
                            print("\nwaiting for the next save; Ctrl-C ends this\n" if sys.stdout.isatty() else "", flush=True)
        except Stopped as stopped:
            on_signals(signal.SIG_IGN)
            ended.set()
            return SIGNALLED + stopped.signum
    if args.json:
        print(as_json(findings_data(request, updates_of_save)), flush=True)
    return code


def _count(args: argparse.Namespace, name: str) -> int:
    """Parse the value of an experiment's field; 0 if it was omitted. Raises Refused."""
    text = getattr(args, name)
    field = next(field for field in FIELDS if field.name == name)
    return int(field.read(text)[name]) if text is not None else 0


def _show(update: WatchUpdate, request: WatchRequest, updates_of_save: Sequence[WatchUpdate]) -> None:
    """Print an update, and each failure once: the first in full, wrong cases after it by their names in the verdict."""
    findings = [one.finding for one in updates_of_save if isinstance(one, Report) and one.finding is not None]
    first = next((finding for finding in findings if not finding.fine), None)
    match update:
        case CheckStart(number):
            lines = [f"{sanitise(source_of(request.path).name)}, save {number}"]
        case Report(about, sentence) if about == NOTE:
            print_message(sentence)
            return
        case Report(_, sentence, found) if found in repeated(findings) or (
            found and not found.n and sentence == verdict(findings)
        ):
            return
        case Report(about, sentence) if about == VERDICT and first is not None and first.n and sentence == first.sentence:
            lines = folded([f"{VERDICTS[False]}: {'; '.join(filter(None, (first.case, repeated_text(findings))))}"])
        case Report():
            lines = folded([line(update)])
        case Activity(text):
            show_progress(text)
            return
        case Superseded():
            lines = ["saved again: the findings of the last save are outdated", ""]
        case CheckEnd():
            return
    show_progress("")
    print("\n".join(lines), flush=True)


def findings_data(request: WatchRequest, updates: Sequence[WatchUpdate]) -> dict[str, Any]:
    """Collect the updates of a save; `right` is None if nothing could be tested on this device."""
    reports = [update for update in updates if isinstance(update, Report)]
    result = next((update for update in reversed(updates) if isinstance(update, CheckEnd)), None)
    return {
        "file": source_of(request.path).name,
        "device": str(request.device),
        "right": result.right if result is not None and result.tested else None,
        "summary": result.verdict if result is not None else "",
        "n": request.n or DEFAULT_N,
        "seconds": next((report.seconds for report in reports if report.seconds is not None), None),
        "findings": [_finding_data(report.finding) for report in reports if report.finding is not None],
        "remarks": [report.sentence for report in reports if report.finding is None and report.about != VERDICT],
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    where = structs.asdict(finding.where) if finding.where is not None else None
    if where is not None:
        del where["mask"]
    return {name: getattr(finding, name) for name in ("case", "outcome", "sentence", "n", "tile", "dtype", "seconds")} | {
        "where": where
    }


def _prompt(prompted: Prompted, before: int = 1) -> list[str]:
    """List the course prompts that the save completes, and the next prompt."""
    done = [f"+ prompt {number} is done" for number in range(before, prompted.place.number)]
    return ["", *done, *folded([f"{prompted.head}: {prompted.text}"]), ""]


def line(report: Report) -> str:
    """Format a report for the terminal; the verdict is emphasised."""
    if report.about == VERDICT:
        return f"{VERDICTS[report.right]}: {report.sentence}"
    return f"{MARKS[report.right]} {report.sentence}"
