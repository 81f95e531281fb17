"""Grade kernels of a course: each in a separate process, with the graphs and points of a rubric."""

from __future__ import annotations

import argparse
import re
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from fwtui.analysis import limits
from fwtui.analysis.export import write_csv
from fwtui.campaigns.grading.points import Grade
from fwtui.campaigns.grading.rubric import EXAMPLE, Rubric, read
from fwtui.campaigns.grading.running import Grading, Submission
from fwtui.commands.support.narrating import say
from fwtui.commands.support.own_kernel import add_own, agree
from fwtui.commands.support.printing import add_forms, folded, table
from fwtui.common.as_json import as_json
from fwtui.common.atomic_file import whole_file
from fwtui.common.container import container_of
from fwtui.common.errors import Refused, why
from fwtui.common.exit_codes import OK, SIGNALLED, WRONG
from fwtui.common.signals import Stopped, handlers_kept, on_signals, stop
from fwtui.common.text import clean, quoted
from fwtui.common.units import ABSENT, counted, digits, duration
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment
from fwtui.experiment.own_kernels import located
from fwtui.machine.auto import settle_here
from fwtui_kernels import registry

MOST_JOBS = 64
LONGEST_PAGE_NAME = 60  # characters of up to four bytes, of 255 that a file's name may have
NO_SANDBOX = "a process is not a sandbox: what is graded can do to this computer and its files whatever you can"
CONTAINED = (
    "each submission runs in containers of its own without a network, where it can read its own files and write nowhere but in "
    "their memory"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE.py", help="submissions, each a kernel file as `fwtui new` writes it")
    about = "a TOML file with kinds of graphs, points and limits; --example-rubric shows one"
    parser.add_argument("--against", metavar="RUBRIC.toml", help=about)
    parser.add_argument("--example-rubric", action="store_true", help="print a rubric with comments, and nothing else")
    about = "submissions tried at once for correctness; times are always taken one at a time; default: 1"
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help=about)
    about = "write a page for each submission into that folder: its points, and what came of every graph"
    parser.add_argument("--feedback", metavar="FOLDER", help=about)
    about = "numbers in place of the files' names, the best first: a table that may be shown to a class"
    parser.add_argument("--nameless", action="store_true", help=about)
    about = "draw the sizes and seeds that the rubric leaves open with this number again; by default they are new each time"
    parser.add_argument("--draw", type=int, metavar="SEED", help=about)
    about = "run each submission in containers of that image, which has fwtui in it, with the podman or docker on PATH"
    parser.add_argument("--container", metavar="IMAGE", help=about)
    parser.add_argument("--device", default="auto", help="auto, simulator, or the number of a GPU; default: auto")
    add_own(parser)
    form = add_forms(parser, "one JSON object per submission")
    form.add_argument("--csv", action="store_true", help="a header, and one line per submission, on stdout")
    parser.description = (
        f"{parser.description}. Points are for distances that are compared, and seconds that are taken, in another process than "
        "the submission's; its plan, races, backend and rungs are told by its own: that finds mistakes, no forgery. "
        f"{NO_SANDBOX[0].upper()}{NO_SANDBOX[1:]}. What you do not know belongs in a container: with --container IMAGE "
        f"{CONTAINED}."
    )


def execute(args: argparse.Namespace) -> int:
    if args.example_rubric:
        sys.stdout.write(EXAMPLE.read_text(encoding="utf-8"))
        return OK
    if args.against is None:
        raise Refused("nothing says what is graded; add --against rubric.toml (`fwtui grade --example-rubric` prints one)")
    if not args.files:
        raise Refused("there is nothing to grade; name one or more kernel files")
    if not 1 <= args.jobs <= MOST_JOBS:
        raise Refused(f"--jobs {args.jobs} is outside 1 to {MOST_JOBS}; choose a number in between")
    if args.draw is not None and args.draw < 0:
        raise Refused(f"--draw {args.draw} is less than 0; give the number that an earlier grading told")
    written = read(Path(args.against))
    rubric = written.draw(args.draw if args.draw is not None else secrets.randbelow(2**31))
    device_text = str(DeviceId.parse(args.device))
    device = settle_here(Experiment(kernel="naive", n=SIMULATOR_MAX_N, device=device_text)).runs_on
    submissions = _submissions(args.files, args.container is not None)
    agree([submission.path for submission in submissions if submission.judgement is None], args.trust)
    container = None
    if args.container is not None:
        container = container_of(args.container, rubric.limits.memory, not device.simulated)
        say(CONTAINED)
    else:
        say(f"{NO_SANDBOX}; --container IMAGE runs it in a container")
    if rubric.kinds != written.kinds or rubric.timing is not None:
        say(f"what the rubric leaves open is drawn with --draw {rubric.seed}, which gives the same graphs again")
    clock = _clock(rubric, device)
    if clock and limits.load(device) is None and limits.load(CPU) is None:
        say(f"no limit of this device is known, so no time is called too short; `{limits.HOW_TO_MEASURE}` measures it")
    grading = Grading(rubric, device, clock, say, container=container)
    code = OK
    try:
        with handlers_kept():
            on_signals(stop)  # so that a judge leaves no folder behind
            grading.correctness(submissions, args.jobs)
            if clock and args.jobs > 1:
                say("times are taken one at a time")
            grading.times(submissions)
    except (KeyboardInterrupt, Stopped) as ended:
        code = SIGNALLED + getattr(ended, "signum", signal.SIGINT)  # what was graded so far is shown
        submissions = [submission for submission in submissions if submission.judgement is not None]
    grades = [grading.grade(submission) for submission in submissions]
    against = rubric.timing.against if rubric.timing is not None else ""
    shown_grades = grades
    if args.nameless:
        best = sorted(grades, key=lambda grade: -grade.points)
        shown_grades = [grade._replace(file=str(number), verdict="") for number, grade in enumerate(best, 1)]
    try:
        _print(shown_grades, against, args)
    finally:  # neither a pipe that ends nor a full disk takes the other one's hours
        if args.feedback is not None:
            _write_pages(Path(args.feedback), rubric, list(zip(submissions, grades, strict=True)))
    return code or (OK if all(grade.passed for grade in grades) else WRONG)


def _submissions(files: list[str], contained: bool) -> list[Submission]:
    """Each file once; one that is there and cannot be a kernel, or in a container, is a submission too. Raises Refused."""
    found: dict[Path, Submission] = {}
    for file in files:
        try:
            path, unfit = located(file), ""
            str(path).encode()
            if contained and ":" in str(path):
                unfit = "podman and docker end its path at the colon in it, and cannot hand it on; rename it"
        except UnicodeEncodeError:
            path, unfit = Path(file).absolute(), "its name is not UTF-8, and cannot be handed on; rename the file"
        except Refused as refusal:
            path, unfit = Path(file).absolute(), str(refusal)
            if not path.exists():
                raise
        if path in found:
            say(f"{clean(file)} is {found[path].name}, and graded once")
        found.setdefault(path, Submission(clean(file), path, unfit))
    return list(found.values())


def _clock(rubric: Rubric, device: DeviceId) -> bool:
    """Whether times can be taken on this device; what cannot be done in the simulator is said."""
    if device.simulated and any(graph.n > SIMULATOR_MAX_N for kind in rubric.kinds for graph in kind.graphs()):
        say(f"kernels for a GPU run in the simulator here, which leaves out graphs of more than {SIMULATOR_MAX_N} vertices")
    if rubric.timing is None:
        return False
    if device.simulated and registry()[rubric.timing.against].backend == "cuda":
        points = f"{rubric.timing.points:g} points for time are not available"
        say(f"no time is taken: there is no GPU for {rubric.timing.against}, and the simulator has no time; {points} here")
        return False
    return True


def _print(grades: list[Grade], against: str, args: argparse.Namespace) -> None:
    rows = [grade.data(against) for grade in grades]
    if args.json:
        for row in rows:
            print(as_json(row))
        return
    if args.csv:
        for row in rows:
            row |= {f"points: {name}": kind["points"] for name, kind in row.pop("kinds").items()}
        write_csv(rows, sys.stdout)
        return
    titles = ("submission", "points", "of", "passed", "backend", "time", "by itself", "share", "verdict")
    lines = [titles, *(_line(grade) for grade in grades)]
    print("\n".join(table(lines, ("time", "by itself", "share"), wrapped=[0, -1])))
    passed = sum(grade.passed for grade in grades)
    print("\n".join(["", *folded([f"{passed} of {counted(len(grades), 'submission')} passed."])]))


def _line(grade: Grade) -> tuple[str, ...]:
    seconds, own_clock = (duration(one) if one is not None else ABSENT for one in (grade.seconds, grade.own_seconds))
    share = digits(grade.share) if grade.share is not None else ABSENT
    passed, backend = "yes" if grade.passed else "no", grade.backend or ABSENT
    return (grade.file, f"{grade.points:g}", f"{grade.of:g}", passed, backend, seconds, own_clock, share, grade.verdict)


def _write_pages(folder: Path, rubric: Rubric, graded: Sequence[tuple[Submission, Grade]]) -> None:
    """Write them all; a page of an earlier grading is replaced. Raises Refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"no page can be written in {quoted(str(folder))}: {why(error)}; choose another folder") from None
    names = set[str]()
    for submission, grade in graded:
        stem = _page_name(submission)
        name = next(name for number in count(1) if (name := f"{stem}-{number}.md" if number > 1 else f"{stem}.md") not in names)
        names.add(name)
        with whole_file(folder / name) as file:
            file.write("\n".join([*_page(rubric, submission, grade), ""]).encode("utf-8", "replace"))


def _page_name(submission: Submission) -> str:
    """The submission's path as it was given, or the end of a long one, as one name without suffix: hw-ada."""
    return re.sub(r"[^\w.-]+", "-", clean(submission.name).removesuffix(".py"))[-LONGEST_PAGE_NAME:].strip("-.")


def _page(rubric: Rubric, submission: Submission, grade: Grade) -> Iterator[str]:
    yield from (f"# {submission.name}", "", f"{grade.points:g} of {grade.of:g} points: {grade.verdict}.")
    judgement = submission.judgement
    for kind, found in zip(grade.kinds, judgement.kinds if judgement is not None else (), strict=False):
        yield from ("", f"## {kind.name}: {kind.points:g} of {kind.of:g}", "")
        yield from (f"- {clean(graph.sentence)}" for graph in found)
    if rubric.timing is not None and grade.time_points is not None:
        yield from ("", f"## Time: {grade.time_points:g} of {rubric.timing.points:g}", "")
        if grade.seconds is not None and grade.rung_seconds is not None:
            own_clock = f" ({duration(grade.own_seconds)} by its own clock)" if grade.own_seconds is not None else ""
            rung = f"{rubric.timing.against} takes {duration(grade.rung_seconds)}"
            yield f"- A pass of n = {rubric.timing.n} takes {duration(grade.seconds)}{own_clock}; {rung}."
