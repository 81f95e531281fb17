"""Shortest distances and paths of your own graph, saved, listed or summarised."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
import time

from fwtui.common.environment import worker_environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import WRONG
from fwtui.common.signals import leave, on_signals
from fwtui.common.streams import flushed, report, reported
from fwtui.graphs.formats import read_help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", help=read_help())
    out = "output file: .npy (distances), .npz (also predecessors and names), .bin (int32), .csv, .tsv or .parquet (a row a pair)"
    parser.add_argument("-o", "--out", metavar="OUT", help=out)
    paths = "write paths too: predecessors of all pairs, or whole paths of --pairs"
    parser.add_argument("--paths", action="store_true", help=paths)
    parser.add_argument("--pairs", default="", metavar="FILE", help="only these pairs: source,target on each line")
    rows = "only the rows of these vertices: one on each line; needs memory for them alone, so that a graph may have a million"
    parser.add_argument("--sources", default="", metavar="FILE", help=rows)
    columns = "only the columns of these vertices: one on each line; with --sources, a matrix of these by those"
    parser.add_argument("--targets", default="", metavar="FILE", help=columns)
    parser.add_argument("--from", default="", metavar="A", dest="source", help="with --to: that path, edge by edge")
    parser.add_argument("--to", default="", metavar="B", dest="target")
    parser.add_argument("--undirected", action="store_true", help="every edge leads both ways, even if the file is directed")
    weight = "column or attribute of the weights, or none to count each edge 1 (default: the one called weight, or like it)"
    parser.add_argument("--weight", default="auto", metavar="NAME", help=weight)
    no_edge = "a weight that means no edge, such as 1073741823; inf if no number does (default: +inf and NaN)"
    parser.add_argument("--no-edge", default="", metavar="VALUE", help=no_edge)
    parser.add_argument("--summary", action="store_true", help="diameter, radius, centre, components, histogram and map")
    about = "JSON on stdout: an object for each pair asked for, else one with what was found and how"
    parser.add_argument("--json", action="store_true", help=about)
    parser.add_argument(
        "--dtype",
        default="",
        metavar="TYPE",
        help="int16, int32, float32 or float64 (default: the narrowest that is exact, else float64)",
    )
    parser.add_argument("--kernel", default="", metavar="ID", help="one of `fwtui kernels`; by default the fastest")
    parser.add_argument("--device", default="", metavar="DEVICE", help="cpu, or a GPU's number; by default what is faster")
    devices = "one matrix over several, a process for each: GPUs like 0,1, all for all GPUs, or cpu,cpu"
    parser.add_argument("--devices", default="", metavar="LIST", help=devices)


def execute(args: argparse.Namespace) -> int:
    begun = time.monotonic()
    if bool(args.source) != bool(args.target):
        raise Refused("a path has two ends; give both --from and --to")
    if args.source and args.pairs:
        raise Refused("--pairs names many pairs and --from one; leave out either")
    if args.sources or args.targets:
        option = "--sources" if args.sources else "--targets"
        if not args.out:
            raise Refused(f"{option} needs an output; give -o OUT too")
        if args.source or args.pairs or args.summary or args.devices:
            raise Refused(f"{option} asks for some distances; leave out --pairs, --from, --summary and --devices")
        if args.targets and args.paths:
            raise Refused("--paths needs whole rows; leave out --targets, or give --pairs FILE in place of both")
    code = WRONG
    if args.alone:
        os.environ.update(worker_environment("real"))  # before NumPy and numba are imported
        atexit.register(lambda: os._exit(code))  # taking numba apart, module by module, would last a quarter of a second
        on_signals(leave)  # during a compilation an exception may be lost or replaced

    def work() -> None:
        from fwtui.solver.command import carry_out

        carry_out(args, begun)

    try:
        code = reported(work, "the distances do not fit into memory; choose a smaller graph")
    except Exception as error:
        if type(error).__name__ != "NegativeCycleError":  # of SciPy, which is imported only where it is needed
            raise
        report(f"{error}; shortest paths do not exist")
    if args.alone:
        code = flushed(code)
        sys.stderr.flush()
    return code
