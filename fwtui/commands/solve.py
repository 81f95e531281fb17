"""Shortest distances and paths of your own graph, saved, listed or summarised."""

from __future__ import annotations

import argparse
import json
import time

from fwtui.common.child_process import in_front
from fwtui.common.errors import Refused
from fwtui.graphs.formats import read_help

ORDER = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", help=read_help())
    out = "where to write: .npy (distances), .npz (distances, predecessors, names), .csv, .tsv or .parquet (a row for each pair)"
    parser.add_argument("-o", "--out", default="", metavar="OUT", help=out)
    paths = "write paths too: predecessors of all pairs, or whole paths of --pairs"
    parser.add_argument("--paths", action="store_true", help=paths)
    parser.add_argument("--pairs", default="", metavar="FILE", help="only these pairs: source,target on each line")
    parser.add_argument("--from", default="", metavar="A", dest="source", help="with --to: that path, edge by edge")
    parser.add_argument("--to", default="", metavar="B", dest="target")
    parser.add_argument("--undirected", action="store_true", help="every edge leads both ways, even if the file is directed")
    parser.add_argument("--summary", action="store_true", help="diameter, radius, centre, components, histogram and map")
    parser.add_argument("--dtype", default="", metavar="TYPE", help="int16, int32 or float32; by default what the weights need")
    parser.add_argument("--kernel", default="", metavar="ID", help="one of `fwtui kernels`, or numpy; by default the fastest")
    parser.add_argument("--device", default="", metavar="DEVICE", help="cpu, or a GPU's number; by default what is faster")
    devices = "one matrix over several, a process for each: GPUs like 0,1, all for all GPUs, or cpu,cpu"
    parser.add_argument("--devices", default="", metavar="LIST", help=devices)


def execute(given: argparse.Namespace) -> int:
    begun = time.monotonic()
    if bool(given.source) != bool(given.target):
        raise Refused("a path has two ends; give both --from and --to")
    if given.source and given.pairs:
        raise Refused("--pairs names many pairs and --from one; leave out either")
    names = ("out", "paths", "undirected", "pairs", "source", "target", "summary", "dtype", "kernel", "device", "devices")
    request = {name: value for name in names if (value := getattr(given, name))}
    return in_front("fwtui.solver", json.dumps({"file": given.graph, "begun": begun, **request}))
