"""Print a script that completes commands, options, kernels and sessions in bash, zsh or fish."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fwtui.commands import COMMANDS
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK
from fwtui.experiment.fields import FIELDS, Choices
from fwtui.experiment.user_kernel_registry import name_for
from fwtui.machine.kernel_folder import kernel_files
from fwtui.sessions.folders import files_in, own_folder, shipped_folder, stem
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.needs import Need, lacking

SHELLS = ("bash", "zsh", "fish")
OF_SESSIONS = ("session", "sessions", "entrants", "resume")  # arguments by their names
OF_KERNELS = ("field_kernel", "kernel", "baseline")
Parser = Callable[[str], argparse.ArgumentParser]  # the parser of one command, or of all without their options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    start = 'bash and zsh: put  eval "$(fwtui completion bash)"  (or zsh) into ~/.bashrc or ~/.zshrc, there after compinit; '
    fish = "fish: fwtui completion fish > ~/.config/fish/completions/fwtui.fish"
    parser.add_argument("shell", choices=SHELLS, help=f"shell. {start}{fish}")


def execute(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["fwtui"], shell=args.shell))
    return OK


def answer(parser: Parser) -> None:
    """Print the completions at the shell's cursor and end this process, without running a user's file."""
    from argcomplete import autocomplete

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))]
    written = line.split()[1:]
    finished = written if line[-1:].isspace() else written[:-1]
    command = finished[0] if finished and finished[0] in COMMANDS else ""
    root = parser(command)
    if command:
        _set_completers(root, command)
    autocomplete(root)


def _set_completers(root: argparse.ArgumentParser, command: str) -> None:
    """Set the completer of each argument; argcomplete offers files for the others."""
    values_of = {f"field_{f.name}": partial(_offered, f.choices) for f in FIELDS if f.choices is not None}
    values_of |= dict.fromkeys(OF_SESSIONS, _sessions) | dict.fromkeys(OF_KERNELS, _kernels)
    for parsers in (action.choices for action in arguments(root) if isinstance(action.choices, Mapping)):
        for action in arguments(parsers[command]):
            if action.dest in values_of and action.choices is None:
                action.completer = partial(_completed, values_of[action.dest])  # type: ignore[attr-defined]


def _completed(values: Callable[[], Iterable[str]], prefix: str, **_: Any) -> list[str]:
    """Complete the last of several comma-separated values, also with file names."""
    from argcomplete.completers import FilesCompleter

    before, comma, last = prefix.rpartition(",")
    found = [f"{before}{comma}{word}" for word in values() if word.startswith(last)]
    return found or list(FilesCompleter()(prefix))


def _kernels() -> Iterable[str]:
    with suppress(Refused):
        yield from map(name_for, kernel_files())
    yield from (*registry(), AUTO.id)


def _offered(choices: Choices) -> Iterable[str]:
    """Return the values that at least one kernel supports."""
    return dict.fromkeys(word for kernel in registry().values() for word in choices(kernel, False))


def _sessions() -> Iterable[str]:
    found = (stem(path) for folder in (own_folder(), shipped_folder()) for path in files_in(folder))
    # the shell might execute other characters in a name
    return (name for name in found if re.fullmatch(r"[A-Za-z0-9._-]+", name))


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a parser, `--help` first; argparse has no public list of them. Raises Refused."""
    need = Need("ArgumentParser._actions", "nothing lists a command's arguments", lambda: isinstance(parser._actions, Sequence))
    if sentence := lacking(f"Python {platform.python_version()}", (need,), "one that fwtui asks for"):
        raise Refused(sentence)
    return parser._actions
