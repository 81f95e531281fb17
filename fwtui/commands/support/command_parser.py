"""The parser of every command: a mistake raises Refused instead of ending the process."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from fwtui.common.errors import Refused
from fwtui.common.streams import flush_output
from fwtui.common.text import quoted, suggest


class CommandParser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})  # new options would break scripts with abbreviated ones

    def error(self, message: str) -> NoReturn:
        more = f"`{self.prog} --help`"
        raise Refused(f"{message} {more} lists them all" if message.endswith("?") else f"{message}; see {more}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            offered = suggest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"{quoted(str(value))} is not supported; {offered}")

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse ignores write errors

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        super().exit(flush_output(status), message)

    def refuse_unknown(self, arguments: list[str]) -> NoReturn:
        """Raise Refused for arguments that the command does not accept."""
        option = next((word.partition("=")[0] for word in arguments if word.startswith("--")), "")
        hint = suggest(option, re.findall(r"--[a-z][\w-]*", self.format_usage())) if option else ""
        unknown = "unrecognized arguments: " + " ".join(arguments)
        self.error(f"{unknown}; {hint}" if hint.endswith("?") else unknown)
