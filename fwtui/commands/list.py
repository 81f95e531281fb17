"""List the shipped sessions and yours."""

from __future__ import annotations

import argparse

from fwtui.commands.support.printing import add_json_option, table
from fwtui.common.as_json import as_json
from fwtui.common.exit_codes import OK
from fwtui.common.text import sanitise
from fwtui.common.units import counted
from fwtui.sessions.folders import own_folder
from fwtui.sessions.library import ENTRY_COLUMNS, ORDERS, LibraryEntry, entry_cells, find, matching, ordered

MIN = ("machine", "size", "from", "length", "kernels", "GPU", "runs", "best", "n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "list only sessions with all these terms in name, title, machine, kernels, state ..."
    parser.add_argument("terms", nargs="*", help=about)
    parser.add_argument("--sort", choices=tuple(ORDERS), default="date", help="order (default: date, newest first)")
    add_json_option(parser, "one JSON object per session")


def execute(args: argparse.Namespace) -> int:
    query, entries = " ".join(args.terms), find()
    found = ordered(matching(entries, query), args.sort)
    if args.json:
        for entry in found:
            print(as_json(data(entry)))
    elif found:
        rows = [[cells[name] for name in ENTRY_COLUMNS] for cells in map(entry_cells, found)]
        print("\n".join(table([ENTRY_COLUMNS, *rows], MIN)))
    elif entries:
        print(f"None of {counted(len(entries), 'session')} matches {sanitise(query)!r}.")
    else:
        print(f"There are no sessions yet; recordings are stored in {sanitise(str(own_folder()))}.")
    return OK


def data(entry: LibraryEntry) -> dict[str, object]:
    """Return the fields of a session: seconds, bytes, relaxations per second; None if unknown."""
    return {
        "name": entry.name,
        "from": entry.origin,
        "path": str(entry.path),
        "title": entry.title,
        "created": entry.created or None,
        "machine": entry.machine or None,
        "gpu": entry.gpu or None,
        "runs": entry.runs,
        "kernels": entry.kernels,
        "n": entry.sizes,
        "best_relaxations_per_second": entry.best_rate,
        "seconds": entry.condition.duration,
        "bytes": entry.size,
        "complete": entry.complete,
        "problem": entry.problem,
    }
