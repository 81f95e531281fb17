"""The parts of the READMEs that could go stale: made from the registry and from a recorded session, between markers.

A part begins with `<!-- NAME: made by fwtui docs -->` and ends with `<!-- end of NAME -->`, each on a line of its own; it is
made in every README that has these lines.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from fwtui.analysis.columns import CHAMPIONS, TableRow, head, line, texts
from fwtui.analysis.report import markdown
from fwtui.commands import about, add_command, arguments, names
from fwtui.commands.kernels import cells
from fwtui.common import units
from fwtui.common.errors import Refused, why
from fwtui.common.exit_codes import EXIT_CODES
from fwtui.common.text import clean
from fwtui.learn.kernel_source import source
from fwtui.learn.lessons import lessons, step_rows
from fwtui.sessions.folders import files_in, shipped_folder, stem
from fwtui.sessions.library import load_model
from fwtui.sessions.reader import open_session
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels import registry
from fwtui_kernels.forms import FORMS

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "README.md"
READMES = (README, *(ROOT / folder / "README.md" for folder in ("kernels", "sessions", "fwtui/commands")))
LADDER_N = 4096  # vertices: every rung is compared at this size
LADDER, CHAMPION = "ladder", "champion"  # how the titles of the sessions begin
RESULTS = ("float32", "none negative")  # type and weights of the rows in the README
MOST_RESULTS = 5
NAIVE, FASTEST = "naive", "look-ahead"


def rewrite(path: Path, check: bool = False) -> bool:
    """Put every part that the file has a place for into it; returns whether that changes it.

    With `check` the file is left alone. Raises Refused if it has no such place, or half of one.
    """
    try:
        before = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name} cannot be read: {why(error)}; run this in a source tree, or name the file") from None
    here = {name: lines for name, lines in PARTS.items() if any(mark in before for mark in _marks(name))}
    if not here:
        marks = " or ".join(repr(_marks(name)[0].strip()) for name in PARTS)
        raise Refused(f"{path.name} has no line {marks}; put it where the part goes, and its end below it")
    after = before
    for name, lines in here.items():
        after = _replaced(after, name, lines(), path.name)
    return update(path, after, check)


def update(path: Path, text: str, check: bool = False) -> bool:
    """Make this the file's text; returns whether that changes it. With `check` the file is left alone. Raises Refused."""
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        if not check:
            path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name} cannot be written: {why(error)}; check its permissions") from None
    return True


def ladder(folder: Path | None = None) -> list[str]:
    """The table of all rungs at n = 4096 from the newest session of the folder titled "ladder ..."; no lines without one."""
    head = ("kernel", "idea", "type", "time", "relaxations/s", "of limit", "as fast as the rung before", "as naive")
    return _from_newest(folder, LADDER, head, head[-5:], _rungs, f"n = {LADDER_N}, each kernel's fastest verified run")


def champion(folder: Path | None = None) -> list[str]:
    """The table of the fastest kernel by size and type from the newest session titled "champion ..."; no lines without one."""

    def rows(model: Model) -> list[tuple[str, ...]]:
        return [line(CHAMPIONS, TableRow(model, run)) for run in sorted(_verified(model), key=lambda run: run.n)]

    titles = head(CHAMPIONS)
    return _from_newest(folder, CHAMPION, titles, ("n", *titles[-3:]), rows, "Verified runs")


def results() -> list[str]:
    """The last rows of the table of champions in one number type, for a first look."""
    head, rule, *rows, _, where = champion()
    complete = [row for row in rows if all(f"| {word} |" in row for word in RESULTS)]
    return [head, rule, *complete[-MOST_RESULTS:], "", where.split(" \\*")[0]]


def kernel_list() -> list[str]:
    """Every kernel: where it runs, what it offers, and who thought of it."""
    names = ("where", "types", "tiles", "options", "source")
    return markdown(("kernel", *names), [(f"`{kernel.id}`", *cells(kernel, *names)) for kernel in registry().values()])


def course_list() -> list[str]:
    """Every step of the course, with the recorded run it is about."""
    course = lessons()
    head, *rows = step_rows(course)
    return [f"**{course.name}**", "", *markdown(head[:-1], [row[:-1] for row in rows])]  # without whether it can be answered here


def inner_loop() -> list[str]:
    """The functions that the fastest rung spends its time in, as they stand in its source."""
    relax, fetch = (
        textwrap.dedent("\n".join(part.lines)).splitlines()
        for name in ("relax_block", "fetch")
        for part in source(FASTEST)
        if any(line.strip().startswith(f"def {name}(") for line in part.lines)
    )
    return ["```python", *relax, "", "", *fetch, "```"]


def forms() -> list[str]:
    """How a relaxation is written in instructions, and where."""
    rows = [(form.title, form.instructions, "weights from 0 up" if form.nonnegative else "any") for form in FORMS]
    return markdown(("cells", "instructions", "weights"), rows)


def commands() -> list[str]:
    """Every command and what it takes, from the parsers; arguments as in `fwtui run` are only named."""
    lines: list[str] = []
    of_run = _taken("run")
    for name in names():
        rows = _taken(name)
        alike = [] if name == "run" else [row for row in rows if row in of_run]
        particular = [row for row in rows if row not in alike]
        words = _plain(about(name))
        lines += ["", f"### fwtui {name}", "", f"{words[:1].upper()}{words[1:]}."]
        lines += ["", *markdown(("argument", "meaning"), particular)] if particular else []
        names_alike = ", ".join(re.sub(r"[ ,][^`]*", "", written) for written, _ in alike)
        lines += ["", f"As in `fwtui run`: {'all arguments' if alike == of_run else names_alike}."] if alike else []
    return lines[1:]


def _taken(command: str) -> list[tuple[str, str]]:
    """The arguments of a command as they are written, and what they mean."""
    parser = argparse.ArgumentParser(prog=f"fwtui {command}")
    add_command(parser, command)
    actions = [action for action in arguments(parser)[1:] if action.help != argparse.SUPPRESS]
    return [(_written(one), _plain((one.help or "") % {**vars(one), "prog": "fwtui"})) for one in actions]


def _written(action: argparse.Action) -> str:
    """An argument as it is written: its names and what follows them."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    name = value if isinstance(value, str) else " ".join(value)
    takes = f" {name}" if action.nargs != 0 else ""
    return f"`{', '.join(action.option_strings)}{takes}`" if action.option_strings else f"`{name}`"


def _plain(text: str) -> str:
    """Text in which Markdown sees no markup, apart from that of code."""
    return re.sub(r"(`[^`]*`)|([<>*_])", lambda found: found[1] or f"\\{found[2]}", " ".join(text.split()))


PARTS = {
    LADDER: ladder,
    CHAMPION: champion,
    "results": results,
    "kernels": kernel_list,
    "inner loop": inner_loop,
    "forms": forms,
    "course": course_list,
    "exit codes": lambda: [f"{EXIT_CODES[0].upper()}{EXIT_CODES[1:]}."],
    "commands": commands,
}


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: made by fwtui docs -->\n", f"<!-- end of {name} -->\n"


def _replaced(text: str, name: str, lines: Sequence[str], file: str) -> str:
    begin, end = _marks(name)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise Refused(
            f"{file} does not have one line {begin.strip()!r} before one line {end.strip()!r}; put them where the part goes"
        )
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    body = "".join(f"{line}\n" for line in lines)
    return f"{before}{begin}{body}{end}{after}"


def _from_newest(
    folder: Path | None,
    title: str,
    head: Sequence[str],
    right: Sequence[str],
    rows: Callable[[Model], list[tuple[str, ...]]],
    what: str,
) -> list[str]:
    """A table of the session of that title that was made last, and where that was; sessions that cannot be read are left out."""
    found: list[tuple[str, str, Path]] = []
    for path in files_in(folder or shipped_folder()):
        try:
            with open_session(path) as session:
                header = session.header
        except Refused:
            continue
        if re.match(rf"{title}\b", header.title, re.IGNORECASE):
            found.append((header.created, path.name, path))
    if not found:
        return []
    *_, newest = max(found)
    model, _ = load_model(newest)
    return [*markdown(head, rows(model), right=right), "", _machine(model, newest, what)]


def _verified(model: Model) -> list[Run]:
    return [run for run in model.runs.values() if run.counts]


def _rungs(model: Model) -> list[tuple[str, ...]]:
    """One row per kernel in the ladder's order, from its fastest verified run; n/a where there is none.

    Times are compared between equal types alone: half the bytes are another problem.
    """
    rows = []
    before: dict[str, Run] = {}  # by type
    for kernel in registry().values():
        run = _best(model, kernel.id)
        if run is None:
            rows.append((f"`{kernel.id}`", kernel.summary, *([units.ABSENT] * 6)))
            continue
        dtype, *cells = texts(TableRow(model, run), "dtype", "time", "relax/s", "of limit")
        gains = _times(before.get(dtype), run), _times(_best(model, NAIVE, dtype), run)
        rows.append((f"`{kernel.id}`", kernel.summary, dtype, *cells, *gains))
        before[dtype] = run
    return rows


def _best(model: Model, kernel: str, dtype: str = "") -> Run | None:
    runs = [run for run in _verified(model) if run.experiment.kernel == kernel and run.n == LADDER_N]
    return min((r for r in runs if dtype in ("", r.experiment.dtype)), key=lambda run: run.seconds or 0.0, default=None)


def _times(slow: Run | None, fast: Run) -> str:
    if slow is None or not slow.seconds or not fast.seconds:
        return units.ABSENT
    return units.gain(slow.seconds / fast.seconds)


def _machine(model: Model, session: Path, what: str) -> str:
    name = stem(session)
    where: list[str] = []
    if model.gpu is not None:
        where += [model.gpu.name, *(f"{name} {v}" for name, v in (("driver", model.gpu.driver), ("CUDA", model.gpu.cuda)) if v)]
    if model.header is not None:
        where += [model.header.machine.cpu, f"on {model.header.created[:10]}"]
    starred = any(run.done and run.done.indicative for run in model.runs.values())
    few = " \\*: fewer than 10 passes, or less than 0.5 s of them." if starred else ""
    return f"{what}: {', '.join(map(clean, filter(None, where)))}; `fwtui replay {name}`.{few}"
