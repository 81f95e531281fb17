"""The program `fwtui`: it parses the arguments, runs a command, and prints a mistake of the user as one sentence."""

from __future__ import annotations

import signal
import sys

if sys.platform == "win32":  # before imports that exist only on Unix
    print("fwtui: Windows itself is not supported; run fwtui in WSL: wsl --install, then as on Linux", file=sys.stderr)
    sys.exit(2)
if __name__ == "__main__" or "".join(sys.argv[:1]).endswith("/fwtui"):  # a separate process: Ctrl-C ends it also during imports
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import shutil
import textwrap
from contextlib import nullcontext
from importlib import import_module

from fwtui.commands import COMMANDS, about, overview
from fwtui.commands.support.command_parser import CommandParser
from fwtui.common import gc_pause
from fwtui.common.errors import NO_THREAD, THREAD_ERROR, NoGpu, Refused
from fwtui.common.exit_codes import EXIT_CODES, NO_GPU, SIGNALLED, USAGE
from fwtui.common.process_limits import check_address_space
from fwtui.common.signals import leave, on_signals, restore_handlers
from fwtui.common.streams import flush_output, prepare_streams, report, report_write_error
from fwtui.common.text import quoted, suggest
from fwtui.common.version import __version__


class _Versions(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from fwtui.machine.hardware import versions

        print(f"fwtui {__version__}")
        for name, version in versions().items():
            if name != "fwtui":
                print(f"{name:16} {version}")
        parser.exit()


NARROWEST = 40  # cells of a terminal for which help is laid out


class _Overview(CommandParser):
    """The program's own parser, whose help shows the commands in groups."""

    def format_help(self) -> str:
        cells = max(NARROWEST, shutil.get_terminal_size().columns - 2)
        groups = overview(cells, "--all" in sys.argv)
        lines = [f"usage: {self.prog} [COMMAND] [OPTIONS]", "", *textwrap.wrap(self.description or "", cells), *groups]
        lines += ["", "`fwtui help COMMAND` describes the options of a command.", "", *textwrap.wrap(EXIT_CODES, cells), ""]
        return "\n".join(lines)


def parser(command: str = "", called: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command, which imports only that command, or without one the parser of --help and --version.

    `called` is the name of the command in error messages, by default its own.
    """
    root = _Overview(
        prog="fwtui",
        description="See how a GPU algorithm gets fast: Floyd-Warshall kernels, run live. Without a command it opens the "
        "dashboard, with the options of `fwtui dashboard`.",
        epilog=EXIT_CODES,
    )
    root.add_argument(
        "--version",
        action=_Versions,
        nargs=0,
        help=f"print the versions of fwtui and its main dependencies (fwtui {__version__})",
    )
    parsers = root.add_subparsers(parser_class=CommandParser, metavar="COMMAND", dest="command")
    for name in [command] if command else COMMANDS:
        summary = about(name)
        sub = parsers.add_parser(name, help=summary, description=summary, epilog=EXIT_CODES)
        sub.prog = called or sub.prog
        if command:
            module = import_module(f"fwtui.commands.{name}")
            module.add_arguments(sub)
            sub.set_defaults(execute=module.execute, parser=sub)
    return root


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    owns_process = arguments is None  # False if a test or a notebook calls main()
    if owns_process:
        on_signals(leave)  # during imports an exception may be lost
        gc_pause.disable_gc()
    argv = sys.argv[1:] if arguments is None else arguments
    prepare_streams()
    argv = _joined(argv)
    if argv[:1] == ["help"]:
        argv = [*(argument for argument in argv[1:2] if argument != "--all"), "--help"]
    unnamed = not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"))
    if unnamed:
        argv = ["dashboard", *argv]
    try:
        check_address_space()
        if not argv[0].startswith("-") and argv[0] not in COMMANDS:
            raise Refused(f"there is no command {quoted(argv[0])}; {_commands_like(argv[0])}")
        if argv[0] == "--version" and argv[1:]:
            raise Refused(f"--version takes no arguments; omit {quoted(argv[1])}")
        args, unknown = parser(argv[0] if argv[0] in COMMANDS else "", "fwtui" if unnamed else "").parse_known_args(argv)
        if unknown:
            args.parser.refuse_unknown(unknown)
        if getattr(args, "out", None) == "":
            raise Refused("-o is empty; pass a file name, or omit -o")
        args.owns_process = owns_process
        gc_pause.enable_gc()
        if owns_process:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # commands close their files and sessions
        with nullcontext() if owns_process else restore_handlers():
            return flush_output(args.execute(args))
    except Refused as refusal:
        report(str(refusal))
        return NO_GPU if isinstance(refusal, NoGpu) else USAGE
    except OSError as error:
        return report_write_error(error)
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    except Exception as error:
        if _interrupted(error):
            return SIGNALLED + signal.SIGINT
        if str(error) != THREAD_ERROR:
            raise
        report(NO_THREAD)
        return USAGE


def _interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused the error, for example an ImportError of an interrupted import."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _commands_like(word: str) -> str:
    hint = suggest(word, COMMANDS)
    return hint if hint.endswith("?") else "`fwtui --help --all` lists all of them"


def _joined(argv: list[str]) -> list[str]:
    """Join `--weights -5..10` to `--weights=-5..10`: argparse reads a value that begins with a minus as a flag."""
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] == "--weights" and argument[:1] == "-" and argument[1:2].isdecimal():
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


if __name__ == "__main__":
    sys.exit(main())
