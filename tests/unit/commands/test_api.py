"""Runs and recordings from Python and in a notebook: `fwtui.run`, `fwtui.load`, and the HTML of a session."""

import ast
import asyncio
import base64
import csv
import io
import json
import os
import re
import signal
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from processes import ROOT, run_python
from recorded_sessions import GOLDEN

import fwtui
from fwtui.__main__ import main
from fwtui.commands.api import running
from fwtui.commands.run import add_run_options
from fwtui.stream import codec, events

RECORDED, GOLDEN = "h200-n4096-naive-blocked", GOLDEN
NOTEBOOK = ROOT / "sessions" / "notebooks" / "first-look.ipynb"
ELEMENTS = {"html", "head", "body", "h3", "p", "strong", "ul", "li", "details", "summary"}
ELEMENTS |= {"table", "thead", "tbody", "tr", "th", "td"}
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&</table>\x1b[2J\u202e'


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def parsed(page: str) -> Any:
    """Parse the page; html5lib raises for invalid HTML."""
    html5lib = pytest.importorskip("html5lib")
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(f"<!doctype html><title>x</title>{page}")


@pytest.fixture(scope="module")
def ran() -> fwtui.Session:
    """Return the session of four runs within an event loop, as in a notebook, and in a thread."""

    async def within() -> None:
        options: dict[str, Any] = {"repeats": 3, "dtype": "int32", "connected": True, "title": "Two", "telemetry_hz": 0}
        sessions.append(fwtui.run(["serial", "tiled-cpu"], n=[16, 24], **options))

    sessions: list[fwtui.Session] = []
    thread = threading.Thread(target=lambda: asyncio.run(within()))
    thread.start()
    thread.join()
    return sessions[0]


class TestRun:
    def test_run_takes_the_options_of_the_command(self) -> None:
        stub = ast.parse((ROOT / "fwtui" / "__init__.pyi").read_text())
        (run,) = (one for one in stub.body if isinstance(one, ast.FunctionDef) and one.name == "run")
        typed = {one.arg for one in (*run.args.args, *run.args.kwonlyargs)}
        parser = ArgumentParser()
        add_run_options(parser)
        options = {max(action.option_strings, key=len)[2:].replace("-", "_") for action in parser._actions}
        of_kernels = {action.dest.removeprefix("option_") for action in parser._actions if action.dest.startswith("option_")}
        assert typed == options - of_kernels - {"help"}

    def test_a_run_has_plain_values(self, ran: fwtui.Session) -> None:
        assert [(run.kernel, run.n, run.state, run.verified) for run in ran] == [
            (kernel, n, "done", True) for kernel in ("serial", "tiled-cpu") for n in (16, 24)
        ]
        first, last = ran[0], ran[-1]
        assert first.data["experiment"]["connected"] and first.data["experiment"]["repeats"] == 3
        assert first.seconds and last.seconds and ran[1].seconds
        assert last.speedup == pytest.approx(ran[1].seconds / last.seconds)
        assert sum(last.phases.values()) > 0 and last.data["title"] == "Tiled CPU"
        assert "run 4: tiled-cpu, n 24" in repr(last)

    def test_a_mistake_has_the_sentence_of_the_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"kernel": "nayve"}, ["-k", "nayve"]),
            ({"n": 0}, ["-n", "0"]),
            ({"kernel": "serial", "n": 8, "thrads": 4}, ["-k", "serial", "-n", "8", "--thrads=4"]),
            ({"kernel": "naive", "n": 8, "threads": 7}, ["-k", "naive", "-n", "8", "--threads", "7"]),
            ({"kernel": "serial", "all": True}, ["-k", "serial", "--all"]),
            ({"kernel": "serial", "n": 8, "telemetry_hz": 99}, ["-k", "serial", "-n", "8", "--telemetry-hz", "99"]),
            ({"kernel": "naive", "n": 4096}, ["-k", "naive", "-n", "4096"]),
            ({"kernel": "serial", "n": [8, 9], "baseline": "naive"}, ["-k", "serial", "-n", "8,9", "--baseline", "naive"]),
        ]
        for options, words in cases:
            with pytest.raises(fwtui.Refused) as refusal:
                fwtui.run(**options)
            assert main(["run", *words]) in (2, 3)
            assert capsys.readouterr().err == f"fwtui: {refusal.value}\n"
        with pytest.raises(fwtui.Refused, match="unrecognized arguments: --json"):
            fwtui.run("serial", n=8, json=True)

    def test_an_interrupt_ends_the_worker_and_keeps_the_runs_that_are_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Interrupting(running.StderrReporter):
            def __call__(self, line: codec.Line) -> None:
                if isinstance(line.event, events.RunStarted) and line.event.run == 2:
                    os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(running, "StderrReporter", Interrupting)
        before = signal.getsignal(signal.SIGINT)
        runs = fwtui.run("serial", n=[8, 9, 10], telemetry_hz=0)
        assert [run.state for run in runs] == ["done", "cancelled"]
        assert not [child for child in psutil.Process().children() if "fwtui.measure.worker" in " ".join(child.cmdline())]
        assert signal.getsignal(signal.SIGINT) is before

    def test_progress_in_a_notebook_is_one_output_that_ends_empty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[str] = []

        def update(bundle: dict[str, str], raw: bool) -> None:
            shown.append(bundle["text/plain"])

        display = SimpleNamespace(display=lambda *given, **options: SimpleNamespace(update=update))
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object, display=display))
        fwtui.run("serial", n=[8, 300], repeats=3, telemetry_hz=0)
        assert any(re.fullmatch(r"run 2 of 2, serial: [█░]{20} [\w -]+ +\d+ %.*", text) for text in shown), shown
        assert shown[-1] == ""


class TestSession:
    def test_a_session_prints_the_table_of_the_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        session = fwtui.load(RECORDED)
        assert main(["replay", "--table", RECORDED]) == 0
        assert capsys.readouterr().out == f"{session!r}\n" == f"{session._repr_mimebundle_()['text/plain']}\n"
        assert main(["replay", "--json", RECORDED]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [run.data["speedup"] for run in session] == [line["speedup"] for line in lines]
        assert [run.bottleneck for run in session] == [line["limited_by"] for line in lines]
        assert [run.phases for run in session] == [line["phases"] for line in lines]

    def test_a_saved_session_is_the_same(self, tmp_path: Path, ran: fwtui.Session) -> None:
        for name in ("mine.fwt.jsonl", "mine.fwt.jsonl.gz"):
            again = fwtui.load(ran.save(tmp_path / name))
            assert [run.data for run in again] == [run.data for run in ran] and repr(again) == repr(ran)
        assert (tmp_path / "mine.fwt.jsonl").read_bytes().startswith(b"{")
        assert fwtui.load(RECORDED).save(tmp_path / "other.fwt.jsonl").read_bytes().startswith(b"{")
        with pytest.raises(fwtui.Refused, match=r"mine\.fwt\.jsonl exists already and is not overwritten"):
            ran.save(tmp_path / "mine.fwt.jsonl")
        with pytest.raises(fwtui.Refused, match="there is no session 'nowhere'"):
            fwtui.load("nowhere")

    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_a_data_frame_has_the_columns_of_the_csv(
        self, package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fakes replace both packages, which the tests do not install."""
        for name in ("pandas", "polars"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(fwtui.Refused, match="needs pandas or polars"):
            fwtui.load(RECORDED).to_dataframe()
        monkeypatch.setitem(sys.modules, package, SimpleNamespace(DataFrame=lambda rows, **options: rows))
        rows = fwtui.load(RECORDED).to_dataframe()
        assert main(["export", RECORDED]) == 0
        head, *lines = csv.reader(io.StringIO(capsys.readouterr().out))
        assert list(dict.fromkeys(name for row in rows for name in row)) == head
        assert [row["kernel"] for row in rows] == [line[head.index("kernel")] for line in lines]
        assert not any("{" in cell for line in lines for cell in line)
        assert main(["export", RECORDED, "--format", "jsonl"]) == 0
        assert "samples" not in head and all(json.loads(row)["samples"] for row in capsys.readouterr().out.splitlines())

    def test_an_incomplete_recording_is_marked(self, tmp_path: Path) -> None:
        cut = tmp_path / "cut.fwt.jsonl"
        cut.write_bytes(GOLDEN.read_bytes()[:-40])
        session = fwtui.load(cut)
        assert repr(session).endswith("This recording is incomplete: the last line is incomplete and skipped; there is no end "
                                      "line, so later events may be missing.")  # fmt: skip
        assert "<strong>This recording is incomplete: the last line" in session._repr_mimebundle_()["text/html"]


class TestHtml:
    def test_the_html_is_valid_and_has_the_texts_of_the_screens(self) -> None:
        page = fwtui.load(RECORDED)._repr_mimebundle_()["text/html"]
        tree = parsed(page)
        assert tree.findtext(".//h3") == "Katz-Kider: 8.03x speedup over Naive"
        assert [one.get("open") for one in tree.iter("details")] == ["", ""]
        phases = [["".join(cell.itertext()) for cell in row] for row in [*tree.iter("table")][1].iter("tr")][1:]
        assert [row[0] for row in phases] == ["pivot", "panels", "remainder"] and phases[2][1:] == ["█" * 37, "30.1 ms", "92.7 %"]
        assert {one.tag for one in tree.iter()} <= ELEMENTS | {"title"}

    def test_hostile_texts_stay_texts(self, tmp_path: Path) -> None:
        lines = [json.loads(line) for line in GOLDEN.read_bytes().splitlines()]

        def spoiled(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: spoiled(inner) for key, inner in value.items()}
            return HOSTILE if isinstance(value, str) else value

        for line in lines:
            for name in ("title", "message", "how", "text", "machine", "note", "program", "created"):
                line |= {name: spoiled(line[name])} if name in line else {}
            if "phases" in line:
                line["phases"] = [{**phase, "title": HOSTILE} for phase in line["phases"]]
        path = tmp_path / "hostile.fwt.jsonl"
        path.write_bytes(b"".join(codec.seal(json.dumps({k: v for k, v in line.items() if k != "c"}).encode()) for line in lines))
        session = fwtui.load(path)
        tree = parsed(session._repr_mimebundle_()["text/html"])
        assert {one.tag for one in tree.iter()} <= ELEMENTS | {"title"}
        assert all(set(one.attrib) <= {"style", "scope", "open"} for one in tree.iter())
        text = "".join(tree.itertext())
        assert "<script>alert(1)</script>" in text and "\x1b" not in text and "\u202e" not in text

    def test_the_html_has_nothing_of_the_users_environment(self, ran: fwtui.Session) -> None:
        page = json.dumps(ran._repr_mimebundle_())
        for name in (os.uname().nodename, str(Path.home()), "/tmp", os.environ.get("USER") or "\0"):
            assert name not in page

    def test_a_replay_is_the_exported_page_in_a_frame_that_reaches_nothing(self, tmp_path: Path) -> None:
        async def within() -> Any:
            return fwtui.load(GOLDEN).replay(start=0.6)

        replay = asyncio.run(within())  # as in a notebook, whose event loop is running
        out = tmp_path / "page.html"
        assert main(["export", str(GOLDEN), "--from", "0.6", "-o", str(out)]) == 0
        assert replay.page == out.read_text(encoding="utf-8")
        frame = parsed(replay._repr_mimebundle_()["text/html"]).find(".//iframe")
        assert frame.get("sandbox") == "allow-scripts" and "srcdoc" not in frame.attrib
        kind, _, data = frame.get("src").partition(",")
        assert kind == "data:text/html;base64" and base64.b64decode(data).decode() == replay.page
        with pytest.raises(fwtui.Refused, match="from 9 to 1 is not a range of seconds"):
            fwtui.load(GOLDEN).replay(start=9, stop=1)


class TestPackage:
    def test_sessions_lists_before_and_after_its_package_is_imported(self) -> None:
        code = (
            "import sys, fwtui; heavy = {'numba', 'textual', 'IPython', 'numpy'}; assert not heavy & set(sys.modules); "
            "first = fwtui.sessions(); import fwtui.sessions.library; assert first == fwtui.sessions() and first; "
            "fwtui.load(next(iter(first))); fwtui.run; assert not (heavy - {'numpy'}) & set(sys.modules); print(*first)"
        )
        assert RECORDED in run_python(code, cwd=ROOT).split()

    def test_kernels_are_listed_with_their_ideas(self) -> None:
        kernels = fwtui.kernels()
        assert next(iter(kernels)) == "serial" and "look-ahead" in kernels and all(kernels.values())


@pytest.fixture
def notebook() -> Iterator[Callable[[], Any]]:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    yield lambda: nbclient.NotebookClient(nbformat.read(NOTEBOOK, as_version=4), timeout=120).execute()


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(notebook: Callable[[], Any]) -> None:
    assert NOTEBOOK.stat().st_size < 200_000
    cells = [cell for cell in notebook().cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum("per-phase times" in page for page in pages) >= 1 and sum("<iframe" in page for page in pages) == 1
    for page in pages:
        parsed(page)
