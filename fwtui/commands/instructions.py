"""Compile kernels for a GPU that need not be here, and print the machine instructions of each line of source."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from fwtui.analysis.warps import derived
from fwtui.commands.support.narrating import say
from fwtui.commands.support.own_kernel import add_own, admitted
from fwtui.commands.support.printing import add_forms
from fwtui.common import units
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, USAGE
from fwtui.common.text import clean, quoted
from fwtui.experiment.experiment import kernel_named
from fwtui.experiment.own_kernels import path_of
from fwtui.live.watching import architecture, capability_of, compile_kernel
from fwtui.machine import hardware
from fwtui.stream.listing import Listing
from fwtui.stream.trials import CompileRequest, OperationResources

USUAL = (9, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "kernels by their ids, or a file with your own, separated by commas"
    parser.add_argument("-k", "--kernel", default="optimized", metavar="ID", help=about)
    about = "the architecture, such as sm_90; by default this GPU's, else sm_90"
    parser.add_argument("--for", dest="architecture", metavar="ARCH", help=about)
    parser.add_argument("--dtype", default="", help="the number type, by default the kernel's first")
    parser.add_argument("--tile", type=int, default=0, metavar="SIZE", help="the tile, by default the kernel's own")
    parser.add_argument("--op", default="", metavar="NAME", help="only this operation, such as rest")
    add_own(parser)
    add_forms(parser, "one JSON object per operation")


def execute(args: argparse.Namespace) -> int:
    here = next((gpu.compute_capability for gpu in hardware.gpus().gpus if gpu.compute_capability), None)
    capability = capability_of(args.architecture) if args.architecture else here or USUAL
    worst = OK
    for name in (admitted(args.kernel, args) or "").split(","):
        kernel = kernel_named(name)
        if kernel.backend != "cuda":
            raise Refused(f"{kernel.id} runs on the CPU, and these are a GPU's instructions; choose a CUDA kernel")
        if args.dtype and args.dtype not in kernel.dtypes:
            raise Refused(f"{kernel.id} has no number type {quoted(args.dtype)}; choose {', '.join(kernel.dtypes)}")
        if args.tile and args.tile not in kernel.tiles:
            raise Refused(f"{kernel.id} has no tile {args.tile}; choose one of {', '.join(map(str, kernel.tiles)) or 'none'}")
        request = CompileRequest(
            kernel=kernel.id, capability=capability, path=path_of(kernel.id), tile=args.tile, dtype=args.dtype, listing=True
        )
        found = compile_kernel(request)
        lacking = found.wrong or found.lacking or found.unlisted if found is not None else "the compiler did not answer"
        if found is None or lacking:
            say(f"{kernel.id}: {lacking}")
            worst = USAGE
            continue
        ops = [used for used in found.used if args.op in ("", used.op)]
        if not ops:
            raise Refused(f"{kernel.id} has no operation {quoted(args.op)}; choose {', '.join(used.op for used in found.used)}")
        for used in ops:
            if args.json:
                facts = {"kernel": kernel.id, "architecture": architecture(capability), **msgspec.to_builtins(used)}
                print(as_json(facts), flush=True)
            else:
                print("\n".join(words(kernel.id, used, architecture(capability))), flush=True)
    return worst


def words(kernel: str, used: OperationResources, arch: str) -> Iterator[str]:
    """An operation: what its inner loop is made of, then each line of source with its instructions."""
    listing = used.listing or Listing()
    registers = units.counted(used.registers, "register")
    spilled = f"{used.spill_bytes:,} bytes spilled" if used.spill_bytes else "no spills"
    yield f"{kernel}, {clean(used.op)}, {arch}: {units.counted(listing.total, 'instruction')}, {registers}, {spilled}"
    yield f"inner loop: {derived(listing) or 'none'}"
    place = None
    for one in listing.instructions:
        if one.line != place:
            place = one.line
            if 0 <= place < len(listing.lines):
                line = listing.lines[place]
                yield f"{line.file}:{line.line}  {line.text.strip()}"
        inside = "|" if listing.loop[0] <= one.offset <= listing.loop[1] and listing.loop[1] else " "
        yield f"  {inside} {one.offset:>5x}  {one.text}"
    if listing.total > len(listing.instructions):
        yield f"  {listing.total - len(listing.instructions):,} other instructions are not listed"
    yield ""
