"""Save a graph as `fwtui run` makes or reads it, or print a small one."""

from __future__ import annotations

import argparse
import json

import msgspec

from fwtui.commands.support.asking import GRAPH, add_fields, experiments
from fwtui.common.child_process import in_front
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import GENERATED, Experiment, settle
from fwtui.graphs.formats import written_help

ORDER = 190


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_fields(parser, only=GRAPH)
    parser.add_argument("-o", "--out", default="", metavar="FILE", help=f"where to write; {written_help()}")


def execute(given: argparse.Namespace) -> int:
    asked = experiments(given, gpu=False)
    if len(asked) > 1:
        raise Refused(f"that describes {len(asked)} graphs, and one is saved at a time; leave out the commas")
    graph = settle(Experiment(**{name: getattr(asked[0], name) for name in (*GENERATED, "file", "dtype")}))
    return in_front("fwtui.measure.graph_process", json.dumps(msgspec.to_builtins(graph)), given.out)
