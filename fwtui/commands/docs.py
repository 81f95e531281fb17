"""Make the README's generated parts and pictures, the ladder from the newest shipped session titled "ladder ..."; and
sessions/schema-v1.json from the types of events.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fwtui.commands import OK, WRONG
from fwtui.commands.support.narrating import say
from fwtui.commands.support.pictures import redraw
from fwtui.commands.support.readme_parts import READMES, ROOT, rewrite, update
from fwtui.sessions import schema

ORDER = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 where the file differs from what would be written"
    )
    parser.add_argument("file", nargs="?", type=Path, help="default: every README of this source tree that has such parts")


def execute(given: argparse.Namespace) -> int:
    changed: list[str] = []
    for path in READMES if given.file is None else [given.file]:
        if rewrite(path, check=given.check):
            changed.append(str(path.relative_to(ROOT)) if path in READMES else path.name)
        changed += redraw(path, check=given.check)
    if given.file is None and update(schema.path(), schema.text(), check=given.check):
        changed.append(schema.FILE)
    for name in changed:
        said = "is not what `fwtui docs` makes; run it" if given.check else "made again"
        say(f"{name} {said}")
    return WRONG if changed and given.check else OK
