"""Serve replays and the course to browsers on this machine only (127.0.0.1); visitors cannot run or change anything."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys

from fwtui.commands.support.display_options import add_display_options, merge_settings
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import SIGNALLED
from fwtui.machine import hardware
from fwtui.sessions.library import resolve
from fwtui.sessions.reader import open_session

HOST = "127.0.0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", nargs="*", metavar="session", help="your sessions to offer too; the first one opens first")
    parser.add_argument("--port", type=int, default=8000, metavar="PORT", help="TCP port, 0 for any free port (default: 8000)")
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    if not 0 <= args.port <= 65535:
        raise Refused(f"port {args.port} is outside 0 to 65535; choose one like 8000, or 0 for any free port")
    from fwtui.tui.frame.appearance import check

    check(merge_settings(args))
    offered = [os.path.abspath(resolve(name)) for name in args.sessions]
    for path in offered:
        with open_session(path):  # report an unreadable session before a visitor opens it
            pass
    try:
        from fwtui.commands.support.web_server import WebServer
    except ModuleNotFoundError:
        raise Refused(f"web pages need textual-serve; run: {hardware.install_command('fwtui[serve]')}") from None
    try:
        listening = socket.create_server((HOST, args.port))
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise Refused(f"port {args.port} is not available: {reason}; choose another with --port") from None
    with listening:
        command = [sys.executable, "-P", "-m", "fwtui", "dashboard", "--read-only", *(f"--offer={path}" for path in offered)]
        command += [f"--theme={args.theme}"] if args.theme is not None else []
        command += ["--present"] * args.present
        server = WebServer(command, HOST, listening.getsockname()[1])
        print(f"Serving replays and the course, read-only, at {server.public_url}/ for this machine; Ctrl+C ends it.", flush=True)
        return SIGNALLED + asyncio.run(server.run(listening))
