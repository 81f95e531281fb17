"""Sessions for programs: runs as plain values, as a data frame, as HTML, and as a replay."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fwtui.analysis.columns import TableRow, texts
from fwtui.analysis.export import rows_of_runs
from fwtui.analysis.html import escaped, session_html
from fwtui.analysis.report import result
from fwtui.commands import export
from fwtui.commands.api.options import parse
from fwtui.commands.support.printing import runs
from fwtui.common import units
from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.sessions.library import model_of, resolve
from fwtui.sessions.reader import load as read
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.export import KINDS, encode
from fwtui_kernels import registry

PACKED = b"\x1f\x8b"  # the first bytes of a file of gzip
FRAME_HEIGHT = 760  # pixels of a replay in a notebook


class MeasuredRun(NamedTuple):
    """A run of a session; a value that was not measured is None."""

    kernel: str
    n: int | None  # vertices
    state: str  # done, refused, failed, cancelled
    verified: bool | None
    seconds: float | None  # median time of the timed repetitions
    speedup: float | None  # seconds of the first verified run of this graph / seconds of this run
    bottleneck: str | None  # memory, latency, instructions ...
    phases: dict[str, float]  # seconds in the instrumented repetition, by key: pivot, panels and rest in a blocked kernel
    bandwidth: float | None  # effective bandwidth, bytes per second
    occupancy: float | None  # theoretical occupancy of the main kernel function, 0 to 1
    data: dict[str, Any]  # all fields of `fwtui run --json`
    text: str  # one line for terminals

    def __repr__(self) -> str:
        return f"<{self.text}>"


FIELDS = {"bottleneck": "limited_by", "bandwidth": "model_bytes_per_second"}  # names in --json, where they differ


def _measured(model: Model, run: Run) -> MeasuredRun:
    data = result(model, run)
    kernel, n, total, ended = texts(TableRow(model, run), "asked", "n", "total", "result")
    values = {name: data[FIELDS.get(name, name)] for name in MeasuredRun._fields[:-2]}
    return MeasuredRun(**values, data=data, text=f"run {run.id}: {kernel}, n {n}, {total}, {ended}")


class Session:
    """The runs of a session, recorded or just measured: a sequence of its runs, as in `session[0]`, `len(session)` and loops."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the session file at that path. Raises Refused."""
        self._path = Path(path).absolute()
        session = read(self._path, for_screen=True)
        self._header, self._problem, self._model = session.header, session.missing, model_of(session.lines)

    @cached_property
    def runs(self) -> tuple[MeasuredRun, ...]:
        """Return the runs in their order."""
        return tuple(_measured(self._model, run) for run in self._model.runs.values())

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[MeasuredRun]:
        return iter(self.runs)

    def __getitem__(self, place: int) -> MeasuredRun:
        return self.runs[place]

    def to_dataframe(self) -> Any:
        """Return a data frame with one row per run, from pandas, or from polars if only that is installed.

        The columns are those of `fwtui export NAME -o runs.csv`: seconds, bytes, relaxations, shares of 1. Raises Refused
        if neither package is installed.
        """
        rows = rows_of_runs(self._model, "runs")
        for name, more in (("pandas", {}), ("polars", {"infer_schema_length": None})):
            try:
                return import_module(name).DataFrame(rows, **more)
            except ModuleNotFoundError:
                continue
        raise Refused("a data frame needs pandas or polars, and neither is installed; install one: pip install pandas")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a new file, compressed if its name ends in .gz, and return the path.

        `fwtui.load` and `fwtui replay` open it. Raises Refused if the file exists or cannot be written.
        """
        content, out = self._path.read_bytes(), Path(path)
        if content.startswith(PACKED):
            content = gzip.decompress(content)
        if out.suffix == ".gz":
            content = gzip.compress(content, mtime=0)
        with atomic_write(out, force=False) as file:
            file.write(content)
        return out

    def replay(
        self, screen: str = "run", start: float | None = None, stop: float | None = None, speed: float = 1, max_gap: float = 1
    ) -> Replay:
        """Return the page of `fwtui export -o x.html`, which a notebook shows in a sandboxed frame.

        `start`, `stop` and `max_gap`, the longest idle gap, are in seconds. Raises Refused.
        """
        options = {"screen": screen, "from": start, "to": stop, "speed": speed, "max_gap": max_gap}
        args = parse("export", export.add_arguments, options, str(self._path), "--out=x.html")
        with ThreadPoolExecutor(1) as thread:  # this thread runs the event loop of the notebook
            film = thread.submit(export.filmed_session, args, KINDS[".html"].rate).result()[2]
        page, film = encode(film, ".html")
        length = f"{units.counted(len(film.frames), 'picture')} of {units.duration(film.duration)}"
        return Replay(page.decode(), f"{film.title}: a replay of {length}, which a notebook plays")

    def __repr__(self) -> str:
        return "\n".join([*runs(self._model), *[f"This recording is incomplete: {self._problem}."] * bool(self._problem)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": session_html(self._model, self._header, self._problem)}


class Replay(NamedTuple):
    """A replay as one web page; `page` is its HTML."""

    page: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        # links within the page work with a data: URL, but not with srcdoc
        source = f"data:text/html;base64,{base64.b64encode(self.page.encode()).decode()}"
        size = f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"'
        frame = f'<iframe title="Replay" sandbox="allow-scripts" {size} src="{source}"></iframe>'
        return {"text/plain": self.text, "text/html": f"{frame}\n<p>{escaped(self.text)}</p>"}


def load(name: str | os.PathLike[str]) -> Session:
    """Load a recorded session by its path or its name in `fwtui.sessions()`. Raises Refused."""
    return Session(resolve(os.fspath(name)))


def kernels() -> dict[str, str]:
    """Return the ids of all kernels with their ideas, from the slowest to the fastest family."""
    return {kernel.id: kernel.summary for kernel in registry().values()}
