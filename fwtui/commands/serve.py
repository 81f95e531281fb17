"""Show the dashboard to browsers: a lecture room can replay and learn, and nothing is run, recorded, saved or changed."""

from __future__ import annotations

import argparse
import io
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fwtui.commands.support.looking import USUAL_SIZE, add_look, preferred
from fwtui.commands.support.narrating import show_drawn
from fwtui.common.errors import Refused, why
from fwtui.common.exit_codes import SIGNALLED
from fwtui.common.text import quoted
from fwtui.machine import hardware
from fwtui.sessions.library import resolve
from fwtui.sessions.reader import load, open_session

if TYPE_CHECKING:
    from fwtui.tui.export.film import Film

LOOPBACK = "127.0.0.1"
NAME = re.compile(r"(https?://)?[a-z0-9.-]{1,253}(?(1)(:\d{1,5})?/?)", re.ASCII | re.IGNORECASE)
USUAL_VISITORS, MOST_VISITORS = 8, 100
PRESENTED, MOST_PRESENTED = 300, 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "sessions of your own that visitors may replay too, besides those that came with fwtui; the first is shown first"
    parser.add_argument("sessions", nargs="*", metavar="session", help=about)
    about = f"address to listen on; default: {LOOPBACK}, for this machine alone; 0.0.0.0: for everyone who can reach it"
    parser.add_argument("--host", default=LOOPBACK, metavar="ADDRESS", help=about)
    parser.add_argument("--port", type=int, default=8000, metavar="PORT", help="default: 8000; 0: any that is free")
    about = (
        "the host, or a proxy's address (https://talk.example.org), by which others reach this; besides it only this machine's "
        "own names and addresses are accepted"
    )
    parser.add_argument("--name", metavar="NAME", help=about)
    about = "how many at once; others are asked to come back; default: 8, each with a process of about 100 MB, or --present: 300"
    parser.add_argument("--visitors", type=int, metavar="COUNT", help=about)
    about = "a lecture for a room: every page follows that of the lecturer, who has the link with the token, and takes guesses"
    parser.add_argument("--present", action="store_true", help=about)
    about = "not read-only: visitors with the link with the token can start runs here, and read and write files as you can"
    parser.add_argument("--allow-runs", action="store_true", help=about)
    add_look(parser, "--presenter")


def execute(args: argparse.Namespace) -> int:
    most = (PRESENTED if args.present else USUAL_VISITORS) if args.visitors is None else args.visitors
    _check(args, most)
    try:
        import segno

        from fwtui.commands.support.talk_server import TalkServer
        from fwtui.commands.support.web_access import WebAccess
        from fwtui.commands.support.web_server import WebServer
    except ModuleNotFoundError:
        raise Refused(f"web pages need textual-serve and segno; run: {hardware.install_command('fwtui[serve]')}") from None
    with _bound(args.host, args.port) as listening:
        address, port = listening.getsockname()[:2]
        page = _page(args.name, address, port)
        access = WebAccess(page, guarded=args.allow_runs or args.present)
        link = f"{page}?token={access.token}" if access.token else page
        server = TalkServer(_film(args), most, access) if args.present else WebServer(_words(args), most, access)
        with _refusing(args.host, args.port):
            listening.listen()  # only now: who comes earlier would wait
        alone = args.name is None and ipaddress.ip_address(address).is_loopback
        print(_address_lines(args, page, link, alone), flush=True)
        if args.present and not alone:
            code = io.StringIO()
            segno.make(page, micro=False).terminal(code, compact=True, border=2)
            with suppress(UnicodeEncodeError):  # a terminal without such characters
                print(code.getvalue(), flush=True)
        return SIGNALLED + server.run(listening)


def _film(args: argparse.Namespace) -> Film:
    """The talk, drawn once for all."""
    from fwtui.tui import filmed
    from fwtui.tui.export import encode
    from fwtui.tui.export.film import FilmCut

    path = resolve(args.sessions[0])
    columns, rows = map(int, USUAL_SIZE.split("x"))
    film = filmed(
        path, load(path, for_screen=True), (columns, rows), FilmCut(), settings=preferred(args), tell=show_drawn(), small=True
    )
    return encode(film, ".html")[1]


def _check(args: argparse.Namespace, most: int) -> None:
    """Raises Refused."""
    if not 0 <= args.port <= 65535:
        raise Refused(f"port {args.port} is outside 0 to 65535; choose one like 8000, or 0 for any that is free")
    highest = MOST_PRESENTED if args.present else MOST_VISITORS
    if not 1 <= most <= highest:
        raise Refused(f"{most} visitors are outside 1 to {highest}; choose a number in between")
    if args.present and (args.allow_runs or len(args.sessions) != 1):
        raise Refused(
            "--present shows one session and runs nothing; give its name alone, as in `fwtui serve lecture-tiles --present`"
        )
    if args.name is not None and not _is_name(args.name):
        raise Refused(
            f"{quoted(args.name)} is not the name of a host; give one like talk.example.org or https://talk.example.org"
        )
    if args.allow_runs and args.sessions:
        raise Refused("with --allow-runs visitors open every session of yours already; leave the names out")
    from fwtui.tui.frame.look import check

    check(preferred(args))
    for name in args.sessions:
        with open_session(resolve(name)):  # a visitor could not mend what cannot be read
            pass


def _is_name(name: str) -> bool:
    try:
        return NAME.fullmatch(name) is not None and urlsplit(name).port != 0
    except ValueError:  # beyond the last port
        return False


@contextmanager
def _refusing(host: str, port: int) -> Iterator[None]:
    """Raises Refused for an address or a port that is not available."""
    try:
        yield
    except (socket.gaierror, UnicodeError):
        raise Refused(f"{quoted(host)} is not an address of this machine; choose {LOOPBACK} or 0.0.0.0") from None
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else why(error)
        raise Refused(f"port {port} of {quoted(host)} is not available: {reason}; choose another with --port") from None


def _bound(host: str, port: int) -> socket.socket:
    """A socket of that address which nobody can connect to yet. Raises Refused."""
    with _refusing(host, port):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        return bound


def _words(args: argparse.Namespace) -> list[str]:
    """The command of each visitor's process."""
    words = [sys.executable, "-P", "-m", "fwtui", "dashboard", "--served" if args.allow_runs else "--read-only"]
    for name in args.sessions:
        words.append(f"--offer={os.path.abspath(resolve(name))}")
    words += [f"--theme={args.theme}"] if args.theme is not None else []
    return words + ["--ascii"] * args.ascii + ["--presenter"] * args.presenter


def _page(name: str | None, address: str, port: int) -> str:
    """The address of the page, as it is printed."""
    if name is not None and "/" in name:
        return f"{name.rstrip('/')}/"
    host = name or (_outward() if ipaddress.ip_address(address).is_unspecified else address)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _outward() -> str:
    """The address that others on the network reach this machine by, which phones know when they do not know its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # sends nothing; the address is one that documents use
        except OSError:
            return socket.gethostname()
        return str(route.getsockname()[0])


def _address_lines(args: argparse.Namespace, page: str, link: str, alone: bool) -> str:
    """What is served where, and for whom."""
    what = (
        "the whole dashboard: who has this link can start runs, and read and write your files,"
        if args.allow_runs
        else "replays and the course, read-only,"
    )
    whom = "for this machine alone (--host 0.0.0.0 opens it to others)" if alone else "for everyone who can reach that address"
    if args.present:
        lead = f"You lead at {link} (keep it to yourself), and in a second window your notes are at {page}notes"
        return f"Presenting {args.sessions[0]} at {page} {whom}; Ctrl+C ends it.\n{lead}"
    return f"Serving {what} at {link} {whom}; Ctrl+C ends it."
