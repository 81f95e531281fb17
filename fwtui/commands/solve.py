"""Compute shortest distances and paths of your graph; write, list or summarise them."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
import time

from fwtui.commands import add_force_option
from fwtui.common.environment import worker_environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.signals import leave, on_signals
from fwtui.common.streams import flush_output, report, report_error
from fwtui.graphs.file_options import AUTO, NO_EDGE_HELP, STDIN, UNDIRECTED_HELP, WEIGHT_HELP
from fwtui.graphs.formats import read_help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", help=f"{read_help()}; - reads standard input")
    out = "output file: .npy (distances), .npz (also predecessors, names), .bin (int32), .csv or .tsv (a row per pair)"
    parser.add_argument("-o", "--out", metavar="OUT", help=out)
    add_force_option(parser)
    paths = "also write paths: predecessors of all pairs, or complete paths with --pairs"
    parser.add_argument("--paths", action="store_true", help=paths)
    pairs = "compute only the pairs in this file, source,target on each line"
    parser.add_argument("--pairs", default="", metavar="FILE", help=pairs)
    rows = "compute only the rows of the vertices in this file, one per line; a graph may then have a million vertices"
    parser.add_argument("--sources", default="", metavar="FILE", help=rows)
    select = "compute only the columns of the vertices in this file, one per line; with --sources, a matrix of sources by targets"
    parser.add_argument("--targets", default="", metavar="FILE", help=select)
    parser.add_argument(
        "--from", default="", metavar="A", dest="source", help="print the path from this vertex to --to, edge by edge"
    )
    parser.add_argument("--to", default="", metavar="B", dest="target", help="end of the path of --from")
    parser.add_argument("--undirected", action="store_true", help=UNDIRECTED_HELP)
    parser.add_argument("--weight", default=AUTO, metavar="NAME", help=f"{WEIGHT_HELP} (default: {AUTO})")
    parser.add_argument("--no-edge", default="", metavar="VALUE", help=NO_EDGE_HELP)
    parser.add_argument("--summary", action="store_true", help="print diameter, radius, centre, components, histogram and map")
    about = "print JSON: one object per requested pair, else one object about the solution"
    parser.add_argument("--json", action="store_true", help=about)
    parser.add_argument(
        "--dtype",
        default="",
        metavar="TYPE",
        help="data type: int16, int32, float32 or float64 (default: the narrowest that is exact, else float64)",
    )
    parser.add_argument("--kernel", default="", metavar="ID", help="kernel id from `fwtui kernels` (default: the fastest)")
    parser.add_argument("--device", default="", metavar="DEVICE", help="cpu or a CUDA device index (default: the faster one)")


def execute(args: argparse.Namespace) -> int:
    begun = time.monotonic()
    if bool(args.source) != bool(args.target):
        raise Refused("a path has two ends; pass both --from and --to")
    if args.source and args.pairs:
        raise Refused("--pairs and --from cannot be combined; pass only one")
    if args.sources or args.targets:
        option = "--sources" if args.sources else "--targets"
        if not args.out:
            raise Refused(f"{option} needs an output file; pass -o OUT too")
        if args.source or args.pairs or args.summary:
            raise Refused(f"{option} cannot be combined with --pairs, --from or --summary; omit these")
        if args.targets and args.paths:
            raise Refused("--paths needs complete rows; omit --targets, or pass --pairs FILE instead of both")
    if (args.graph, args.pairs, args.sources, args.targets).count(STDIN) > 1:
        raise Refused("standard input can be read only once; pass - for one file, and a path for the others")
    code = WRONG
    if args.owns_process:
        os.environ.update(worker_environment("real"))  # before NumPy and numba are imported
        atexit.register(lambda: os._exit(code))  # the regular exit of numba takes a quarter of a second
        on_signals(leave)  # during a compilation an exception may be lost or replaced
    try:
        from fwtui.solver.command import carry_out

        carry_out(args, begun)
        code = OK
    except Exception as error:
        if type(error).__name__ == "NegativeCycleError":  # a SciPy class, compared by name to avoid the import
            report(f"{error}; shortest paths do not exist")
        else:
            code = report_error(error, "the distances do not fit into memory; choose a smaller graph")
    if args.owns_process:
        code = flush_output(code)
        sys.stderr.flush()
    return code
