"""The README's pictures: each is made by the `fwtui render` command in the comment before it.

<!-- picture: fwtui render NAME --at 12.5 --screen run --size 120x40 -o .github/picture.svg -->
"""

from __future__ import annotations

import argparse
import re
import shlex
import tempfile
from pathlib import Path

from fwtui.commands import render
from fwtui.common.errors import Refused, why
from fwtui.common.text import shown

_COMMENT = re.compile(r"^<!-- picture: fwtui render (.+) -->$", re.MULTILINE)


def redraw(readme: Path, check: bool = False) -> list[str]:
    """Draw every picture again and return the names of those that were not the same bytes; with `check` nothing is written.

    Files are beside the README. Raises Refused for a comment that is no command, and for what cannot be drawn or written.
    """
    parser = argparse.ArgumentParser(prog="fwtui render", exit_on_error=False)
    render.add_arguments(parser)
    different: list[str] = []
    for words in _COMMENT.findall(readme.read_text(encoding="utf-8")):
        try:
            given = parser.parse_args(shlex.split(words))
        except (argparse.ArgumentError, SystemExit, ValueError):
            raise Refused(f"{readme.name} has a picture made by {shown(words)}, which is no command; see fwtui render") from None
        target = readme.parent / given.out
        with tempfile.TemporaryDirectory() as folder:
            given.out = str(Path(folder) / target.name)
            render.execute(given)
            drawn = Path(given.out).read_bytes()
        if target.is_file() and target.read_bytes() == drawn:
            continue
        different.append(target.name)
        if not check:
            try:
                target.write_bytes(drawn)
            except OSError as error:
                raise Refused(f"{target.name} cannot be written: {why(error)}; check its folder") from None
    return different
