"""`fwtui`: parse, do, and turn every user's mistake into one sentence."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import NoReturn

from fwtui import __version__
from fwtui.commands import helps, names
from fwtui.common import gc_pause
from fwtui.common.errors import NoGpu, Refused
from fwtui.common.exit_codes import EXIT_CODES, NO_GPU, SIGNALLED, USAGE
from fwtui.common.streams import ready_streams, unwritten
from fwtui.common.text import clean


class _Versions(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from fwtui.machine.hardware import versions

        for name, version in versions().items():
            print(f"{name:16} {version}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; see `{self.prog} --help`")


def parser(command: str = "") -> argparse.ArgumentParser:
    """The command line of one command, and nothing but that command is imported; without one that of --help and --version."""
    root = _Parser(
        prog="fwtui",
        description="See how a GPU algorithm gets fast: Floyd-Warshall kernels, run live. Without a command: the dashboard.",
        epilog=EXIT_CODES,
    )
    root.add_argument("--version", action=_Versions, nargs=0, help=f"versions of everything that matters (fwtui {__version__})")
    parsers = root.add_subparsers(metavar="COMMAND", dest="command")
    for name, about in helps(command).items():
        sub = parsers.add_parser(name, help=about, description=about, epilog=EXIT_CODES)
        if command:
            module = importlib.import_module(f"fwtui.commands.{name}")
            module.add_arguments(sub)
            sub.set_defaults(execute=module.execute)
            root.prog = sub.prog  # whose help says more about words that are too many
    return root


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if arguments is None:  # a process of its own
        gc_pause.rest()
    words = sys.argv[1:] if arguments is None else arguments
    ready_streams()
    words = _joined(words)
    if not words or words[0] not in ("-h", "--help", "--version", *names()):
        words = ["dashboard", *words]
    try:
        given = parser(words[0] if words[0] in names() else "").parse_args(words)
        gc_pause.wake()
        return given.execute(given)
    except Refused as refusal:
        print(f"fwtui: {clean(str(refusal))}", file=sys.stderr)
        return NO_GPU if isinstance(refusal, NoGpu) else USAGE
    except OSError as error:
        return unwritten(error)
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT


def _joined(words: list[str]) -> list[str]:
    """`--weights -5..10` as one word: argparse takes what begins with a minus for another flag."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--weights" and word[:1] == "-" and word[1:2].isdecimal():
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


if __name__ == "__main__":
    sys.exit(main())
