"""Print every setting with its value and its source: option, environment, file or default."""

from __future__ import annotations

import argparse
import json
import os

from fwtui.commands.support.printing import add_json_option, table
from fwtui.common.exit_codes import OK
from fwtui.common.text import sanitise
from fwtui.machine import settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    form = add_json_option(parser, "one JSON object")
    form.add_argument("--path", action="store_true", help="print only the path of the settings file, also if it does not exist")


def execute(args: argparse.Namespace) -> int:
    if args.path:
        print(settings.file_path())
        return OK
    from fwtui.tui.frame.appearance import check

    found = settings.load()
    check(found)
    about = {name: (key.variable, key.help) for name, key in settings.KEYS.items()}
    if args.json:
        values: dict[str, dict[str, str]] = {}
        for name, v in found.everything():
            variable, description = about[name]
            values[name] = {"value": v.text, "origin": v.origin, "where": v.where, "variable": variable, "about": description}
        print(json.dumps({"file": str(found.path), "there": os.path.exists(found.path), "settings": values}, indent=2))
        return OK
    print(f"file: {sanitise(str(found.path))}{'' if os.path.exists(found.path) else ' (there is none)'}\n")
    rows = [("setting", "value", "source", "variable", "about")]
    for name, value in found.everything():
        variable, description = about[name]
        origin = value.where if value.origin == "environment" else value.origin
        rows.append((name, value.text or "-", origin, variable, description))
    print("\n".join(table(rows, ("variable",), [rows[0].index(title) for title in ("value", "about")], only_text=True)))
    return OK
