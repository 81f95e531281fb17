"""A session as a program sees it: its runs as plain values, as a data frame, as HTML, and as a replay."""

from __future__ import annotations

import base64
import gzip
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, overload

from fwtui.analysis.columns import TableRow, texts
from fwtui.analysis.export import rows_of_runs
from fwtui.analysis.html import escaped, session_html
from fwtui.analysis.report import result
from fwtui.api.options import parse
from fwtui.commands import export
from fwtui.commands.support.printing import runs
from fwtui.common import units
from fwtui.common.atomic_file import new_whole_file
from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.experiment.own_kernels import name_for
from fwtui.machine.kernel_folder import kernel_files
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.library import model_of, recorded_on, resolve
from fwtui.sessions.reader import load as read
from fwtui.sessions.recorder import Recorder
from fwtui.stream.codec import Line
from fwtui.stream.events import Header
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.export import KINDS, encode
from fwtui_kernels import registry

PACKED = b"\x1f\x8b"  # the first bytes of a file of gzip
FRAME_HEIGHT = 760  # pixels of a replay in a notebook


class MeasuredRun:
    """One run of a session. A value that was not measured is None."""

    def __init__(self, model: Model, run: Run) -> None:
        self._model, self._run = model, run

    @cached_property
    def data(self) -> dict[str, Any]:
        """Everything known of the run, with the fields of `fwtui run --json`: seconds, bytes, relaxations, shares of 1."""
        return result(self._model, self._run)

    @property
    def kernel(self) -> str:
        """The kernel's id."""
        return self._run.experiment.kernel

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self._run.n

    @property
    def state(self) -> str:
        """How the run ended: done, refused, failed or cancelled."""
        return self._run.state

    @property
    def verified(self) -> bool:
        """True if the distances were found correct."""
        return bool(self._run.verified)

    @property
    def seconds(self) -> float | None:
        """The median time of the timed repetitions, in seconds."""
        return self.data["seconds"]

    @property
    def speedup(self) -> float | None:
        """The median time of the first verified run of the same graph, divided by that of this run."""
        return self.data["speedup"]

    @property
    def bottleneck(self) -> str | None:
        """The name of the resource that limits the run, such as memory or latency."""
        return self.data["limited_by"]

    @property
    def phases(self) -> dict[str, float]:
        """The seconds of each phase in the instrumented repetition, by key: pivot, panels and rest in a blocked kernel."""
        return self.data["phases"]

    @property
    def bandwidth(self) -> float | None:
        """The effective bandwidth, in bytes per second."""
        return self.data["model_bytes_per_second"]

    @property
    def occupancy(self) -> float | None:
        """The theoretical occupancy of the main kernel function, 0 to 1."""
        return self.data["occupancy"]

    def __repr__(self) -> str:
        kernel, total, ended = texts(TableRow(self._model, self._run), "asked", "total", "result")
        return f"<run {self._run.id}: {kernel}, n {self.n}, {total}, {ended}>"


class Session(Sequence[MeasuredRun]):
    """The runs of a session, recorded or just measured, in their order.

    `len(session)`, `session[0]` and loops are of its runs.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the session file at that path. Raises Refused."""
        self._path = Path(path).absolute()
        loaded = read(self._path, for_screen=True)
        self._header, self._problem, self._model = loaded.header, loaded.missing, model_of(loaded)
        self._runs = tuple(MeasuredRun(self._model, run) for run in self._model.runs.values())

    @classmethod
    def recorded(cls, header: Header, lines: Iterable[Line], reason: str, seconds: float) -> Session:
        """Return the session of these lines, which ended for that reason after so many seconds.

        Its file is temporary. Raises Refused if it cannot be written.
        """
        folder = tempfile.mkdtemp(prefix="fwtui-")
        try:
            recorder = Recorder.at(Path(folder, f"session{SUFFIX}"), header, lines)
            recorder.close(reason, t=seconds)
            if recorder.failure is not None:
                raise Refused(f"{recorder.failure}; free some space, or set TMPDIR to another folder")
            session = cls(recorder.path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(session, shutil.rmtree, folder, ignore_errors=True)
        return session

    @property
    def title(self) -> str:
        """The title under which the session was recorded; empty without one."""
        return clean(self._header.title)

    @property
    def complete(self) -> bool:
        """True unless the recording was damaged or cut off."""
        return not self._problem

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, place: int) -> MeasuredRun: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[MeasuredRun]: ...
    def __getitem__(self, place: int | slice) -> MeasuredRun | Sequence[MeasuredRun]:
        return self._runs[place]

    def to_dataframe(self) -> Any:
        """Return a data frame of pandas, or of polars if only that is installed: one row a run.

        The columns are those of `fwtui export NAME -o runs.csv`: seconds, bytes, relaxations, shares of 1. Raises Refused
        without either package.
        """
        rows = rows_of_runs(self._model, "runs")
        for name, more in (("pandas", {}), ("polars", {"infer_schema_length": None})):
            try:
                return import_module(name).DataFrame(rows, **more)
            except ModuleNotFoundError:
                continue
        raise Refused("a data frame needs pandas or polars, and neither is installed here; install one: pip install pandas")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a new file, packed if its name ends in .gz, and return the path.

        `fwtui.load` and `fwtui replay` open it. Raises Refused if the file exists or cannot be written.
        """
        content, out = self._path.read_bytes(), Path(path)
        packed = content.startswith(PACKED)
        if packed and out.suffix != ".gz":
            content = gzip.decompress(content)
        elif out.suffix == ".gz" and not packed:
            content = gzip.compress(content, mtime=0)
        with new_whole_file(out) as file:
            file.write(content)
        return out

    def replay(
        self,
        *,
        screen: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        speed: float | None = None,
        fps: float | None = None,
        max_gap: float | None = None,
    ) -> Replay:
        """Return the page that `fwtui export -o x.html` writes, which a notebook shows in a frame that can reach nothing else.

        `start`, `stop` and `max_gap`, the longest idle gap, are seconds of the session; `fps` is pictures per second.
        Drawing takes a few seconds for each minute. Raises Refused.
        """
        options = {"screen": screen, "from": start, "to": stop, "speed": speed, "fps": fps, "max_gap": max_gap}
        args = parse("export", export.add_arguments, options, str(self._path), "--out=x.html")
        with ThreadPoolExecutor(1) as thread:  # the event loop of a notebook runs in this one
            film = thread.submit(export.filmed_session, args, KINDS[".html"].rate).result()[2]
        page, film = encode(film, ".html")
        return Replay(page, f"{units.counted(len(film.frames), 'picture')} of {units.duration(film.duration)}")

    def __repr__(self) -> str:
        return "\n".join(runs(self._model))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        gpu = next((device.name for device in self._model.devices.values() if device.present and device.name), "")
        page = session_html(self._model, self.title, recorded_on(self._header, gpu), self._problem)
        return {"text/plain": repr(self), "text/html": page}


class Replay:
    """A replay as one web page; `page` is its HTML."""

    def __init__(self, page: bytes, words: str) -> None:
        self.page = page.decode()
        self._words = words

    def __repr__(self) -> str:
        return f"a replay: {self._words}; a notebook plays it"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        # links within the page work with a data: address, and do not with srcdoc
        source = f"data:text/html;base64,{base64.b64encode(self.page.encode()).decode()}"
        size = f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"'
        frame = f'<iframe title="Replay" sandbox="allow-scripts" {size} src="{source}"></iframe>'
        return {"text/plain": repr(self), "text/html": f"{frame}\n<p>{escaped(repr(self))}</p>"}


def load(name: str | os.PathLike[str]) -> Session:
    """Return a recorded session: the path of a file, or a name of `fwtui.sessions()`. Raises Refused."""
    return Session(resolve(os.fspath(name)))


def kernels() -> dict[str, str]:
    """Return the ids of all kernels, from the slowest to the fastest family, each with its idea; then your own."""
    own = {name_for(path): clean(words) for path, words in kernel_files().items()}
    return {kernel.id: kernel.summary for kernel in registry().values()} | own
