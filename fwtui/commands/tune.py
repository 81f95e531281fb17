"""Measure kernels, tiles, options and launch modes on this device, and store the fastest for the kernel `auto`."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

import msgspec

from fwtui.analysis.columns import PICKED, TUNED, TableRow, columns_of, head, line
from fwtui.campaigns.tuning import Problem, Tuner
from fwtui.commands.support.experiment_options import parse_choices
from fwtui.commands.support.printing import add_json_option, table, width
from fwtui.commands.support.recording_options import add_recording_options, close_session, live_session, report_recording_failure
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.commands.support.tables import MIN_WORDS
from fwtui.commands.support.user_kernel_options import add_trust_option, register_kernels
from fwtui.common.as_json import as_json
from fwtui.common.errors import NoGpu, Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.experiment.fields import BY_NAME
from fwtui.experiment.user_kernel_registry import user_kernels
from fwtui.machine.device_choice import auto_device
from fwtui.machine.hardware import gpus
from fwtui.machine.tuning_table import TuningResult
from fwtui.stream.model import Model
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.plan import Kernel

SIZES = {"cpu": (256, 512, 1024, 2048), "cuda": (512, 1024, 2048, 4096, 8192)}
BEST_RUNGS = 5
WORDS = ("choices", "remark")  # columns that may take several lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--n", metavar="N,...", help="sizes to tune for (default: 256 to 2048, on a GPU 512 to 8192)")
    parser.add_argument(
        "--dtype", default="float32,int32", metavar="TYPE,...", help="data types to tune for (default: float32,int32)"
    )
    about = "kernels to choose from, ./mine.py for yours (default: the best known ones)"
    parser.add_argument("-k", "--kernel", metavar="ID,...", help=about)
    parser.add_argument(
        "--negative", default="0", metavar="SHARE", help="share of negative edges of the graphs, 0 to 0.45 (default: 0)"
    )
    parser.add_argument("--device", default="auto", metavar="DEVICE", help="auto or a CUDA device index (default: auto)")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="time budget in seconds; repeat the command to continue (default: 120)"
    )
    parser.add_argument("--fresh", action="store_true", help="discard earlier measurements of these kernels")
    add_trust_option(parser)
    add_json_option(parser, "one JSON object per measurement")
    add_recording_options(parser)
    parser.set_defaults(telemetry_hz=1.0)


def execute(args: argparse.Namespace) -> int:
    if not 1 <= args.seconds <= 86400:
        raise Refused(f"{args.seconds:g} seconds are outside 1 to 86400; pass a value in this range")
    device_text = BY_NAME["device"].read(args.device)["device"]
    share = BY_NAME["negative"].read(args.negative)["negative"]
    if device_text == "simulator":
        raise Refused("the simulator measures no times, so it cannot tune kernels; pass auto or a CUDA device index")
    graph = Experiment(device=device_text, negative=share, verify="auto")
    device = auto_device(graph)
    sizes = parse_choices(args.n, "n") if args.n is not None else SIZES[device.backend]
    dtypes = parse_choices(args.dtype, "dtype")
    problems = [Problem(n, dtype, not share) for n in sorted(sizes) for dtype in dtypes]
    kernels = _kernels(register_kernels(args.kernel, args), device.backend, dtypes)
    live = live_session(args, device_text)
    live.sinks.append(report_recording_failure)
    try:
        tuner = Tuner(live, device, kernels, graph, _json if args.json else _shown, args.fresh)
        if not args.json:
            _print(head(TUNED))
        whole = tuner.tune(problems, args.seconds)
    finally:
        recorded = close_session(live, args)
    users = [kernel.id for kernel in kernels if kernel.id in user_kernels()]
    found: list[TuningResult] = []
    # the best of each user kernel, then the new choices of auto, which never chooses user kernels
    for names, columns in ((users, TUNED), ([""] * (len(users) < len(kernels)), PICKED)):
        best = [t for name in names for problem in problems if (t := tuner.best(problem, name)) is not None]
        found += best
        if names and not args.json:
            rows = [head(columns), *(line(columns, TableRow(Model(), result.run, ended="its best")) for result in best)]
            print("\n".join(["", *table(rows, ("type", "rate"), [rows[0].index("choices")])]), flush=True)
    if not tuner.saved:
        print_message(
            "the results cannot be stored for auto: the cache folder is not writable; make it writable, or set XDG_CACHE_HOME"
        )
    if not whole:
        how = "the same command continues the search" if tuner.saved else "pass a larger --seconds"
        print_message(f"the time budget is spent, but some configurations were not measured; {how}")
    return recorded or (OK if found else WRONG)


def _kernels(names: str | None, backend: str, dtypes: Sequence[str]) -> list[Kernel]:
    if names is None:
        return list({kernel.id: kernel for dtype in dtypes for kernel in in_order(backend, dtype)[:BEST_RUNGS]}.values())
    kernels = [kernel_named(word.strip()) for word in names.split(",")]
    for kernel in kernels:
        if kernel.id == AUTO.id:
            raise Refused("auto cannot be tuned; name other kernels, or omit --kernel for the best known ones")
        if kernel.backend != backend:
            if backend == "cpu":
                why = gpus().reason or "numba-cuda is not installed"
                raise NoGpu(f"{kernel.id} runs on a GPU, and none is available: {why}; omit it")
            raise Refused(f"{kernel.id} runs on the CPU, but auto uses the GPU; omit it")
    return kernels


def _shown(result: TuningResult, best: bool) -> None:
    _print(line(TUNED, TableRow(Model(), result.run, ended="best so far" if best else sanitise(result.note))))


def _print(texts: Sequence[str]) -> None:
    """Print a line of an unfinished table; its columns have fixed widths."""
    columns, room = columns_of(TUNED), width()
    cells = {c.key: text.rjust(c.cells) if c.right else text.ljust(c.cells) for c, text in zip(columns, texts, strict=True)}
    if sum(c.cells for c in columns) + 2 * len(columns) <= room:
        print("  ".join(cells.values()).rstrip(), flush=True)
        return
    text = "; ".join(filter(None, (cells.pop(key).strip() for key in WORDS)))  # text columns come last and may take several lines
    before = "  ".join(cells.values()) + "  "
    first, *more = textwrap.wrap(text, max(int(room) - len(before), MIN_WORDS)) or [""]
    print("\n".join([f"{before}{first}".rstrip(), *(" " * len(before) + part for part in more)]), flush=True)


def _json(result: TuningResult, best: bool) -> None:
    print(as_json({**msgspec.to_builtins(result), "best": best}), flush=True)
