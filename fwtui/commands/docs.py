"""Make the README's generated parts and pictures, the ladder from the newest shipped session titled "ladder ..."; and
sessions/schema-v1.json from the types of events.
"""

from __future__ import annotations

import argparse
import re
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fwtui.commands import export, render
from fwtui.commands.support.narrating import say
from fwtui.commands.support.readme_parts import READMES, ROOT, rewrite, update
from fwtui.common.errors import Refused, why
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.text import quoted
from fwtui.sessions import schema

_COMMENT = re.compile(r"^<!-- picture: fwtui (render|export) (.+) -->$", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "change nothing; exit 1 if the file differs from what would be written"
    parser.add_argument("--check", action="store_true", help=about)
    parser.add_argument("file", nargs="?", type=Path, help="default: every README of this source tree that has such parts")


def execute(args: argparse.Namespace) -> int:
    readmes, root = (READMES, ROOT) if args.file is None else ([args.file], args.file.parent)
    changed = remade(readmes, args.check, root)
    if args.file is None and update(schema.path(), schema.text(), check=args.check):
        changed.append(schema.FILE)
    for name in changed:
        verdict = "is not what `fwtui docs` makes; run it" if args.check else "made again"
        say(f"{name} {verdict}")
    return WRONG if changed and args.check else OK


def remade(readmes: Iterable[Path], check: bool, root: Path) -> list[str]:
    """Make the parts and pictures of these files again; the names of what changed, as seen from `root`."""
    changed: list[str] = []
    for path in readmes:
        if rewrite(path, check):
            changed.append(str(path.relative_to(root)))
        changed += redraw(path, check)
    return changed


def redraw(readme: Path, check: bool = False) -> list[str]:
    """Draw every picture again and return the names of those that changed; with `check` nothing is written.

    A picture is made by the command in the comment before it: <!-- picture: fwtui render NAME --at 12.5 -o picture.svg -->.
    Of an animated one, which takes long to draw, `check` compares the last screen alone. Files are beside the README.
    Raises Refused for a comment that is not a command, and for a picture that cannot be drawn or written.
    """
    different: list[str] = []
    for command, words in _COMMENT.findall(readme.read_text(encoding="utf-8")):
        module = {"render": render, "export": export}[command]
        parser = argparse.ArgumentParser(prog=f"fwtui {command}", exit_on_error=False)
        module.add_arguments(parser)
        try:
            args = parser.parse_args(shlex.split(words))
        except (argparse.ArgumentError, SystemExit, ValueError):
            raise Refused(
                f"{readme.name} has a picture made by {quoted(words)}, which is not a command; see fwtui {command}"
            ) from None
        target = readme.parent / (args.out or "")
        if check and module is export:
            different += [target.name] * (not export.still_true(args, target))
            continue
        with tempfile.TemporaryDirectory() as folder:
            args.out = str(Path(folder) / target.name)
            module.execute(args)
            picture = Path(args.out).read_bytes()
        if target.is_file() and target.read_bytes() == picture:
            continue
        different.append(target.name)
        if not check:
            try:
                target.write_bytes(picture)
            except OSError as error:
                raise Refused(f"{target.name} cannot be written: {why(error)}; check its folder") from None
    return different
