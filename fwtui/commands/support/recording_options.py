"""Options of commands with a live session, and the start of that session."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwtui.commands.support.stderr_reporter import StderrReporter, print_message
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import NOT_RECORDED, OK
from fwtui.common.signals import on_signals, stop
from fwtui.live.session import Live
from fwtui.machine import settings
from fwtui.machine.settings import SAMPLES

MIN_HZ, MAX_HZ = 0.01, 10


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands with a live session."""
    about = "record the session (default path: in the user's data folder)"
    parser.add_argument("--record", nargs="?", const="", metavar="PATH", help=about)
    parser.add_argument("--title", default="", help="title of the recorded session")
    parser.add_argument(
        "--telemetry-hz", type=float, default=10.0, metavar="HZ", help="sampling rate in Hz, at most 10; 0 disables (default: 10)"
    )
    about = "also record the source of your kernels; replays show it and never run it"
    parser.add_argument("--record-source", action="store_true", help=about)
    add_samples_option(parser)


def add_samples_option(parser: argparse.ArgumentParser) -> None:
    about = "warp stall reasons by source line, sampled on the first GPU after a run; auto: if that takes less than 1 s"
    parser.add_argument("--samples", choices=SAMPLES, help=about)


def sampling_mode(args: argparse.Namespace) -> str:
    """Return the value of the option, or else of the setting."""
    return args.samples or settings.load().text("samples")


def live_session(args: argparse.Namespace) -> Live:
    """Start a live session with the recording options and the telemetry of the device. Raises Refused."""
    rate = args.telemetry_hz
    if rate != 0 and not MIN_HZ <= rate <= MAX_HZ:
        raise Refused(f"telemetry rate {rate:g} Hz is neither 0 nor in {MIN_HZ} to {MAX_HZ} Hz; pass a rate in this range")
    live = Live(telemetry_hz=rate, device=getattr(args, "field_device", None) or "auto")
    live.record_source = args.record_source
    live.samples = sampling_mode(args)
    if args.record is not None:
        try:
            live.record(path=Path(args.record) if args.record else None, title=args.title)
        except Refused:
            live.close()
            raise
    return live


def with_progress(live: Live) -> None:
    """Let signals raise Stopped, and report progress and errors to stderr."""
    on_signals(stop)
    live.sinks.append(StderrReporter(live.model))
    if live.recorder is not None:
        print_message(f"recording to {live.recorder.path}")


def close_session(live: Live, args: argparse.Namespace, reason: str = "closed") -> int:
    """End the session; return NOT_RECORDED if the requested recording failed, else OK."""
    recorder = live.recorder
    live.close(reason)
    if recorder is not None and recorder.failure is not None:
        print_message(recorder.failure)
    return OK if args.record is None or (recorder is not None and recorder.failure is None) else NOT_RECORDED
