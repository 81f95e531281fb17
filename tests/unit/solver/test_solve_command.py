"""`fwtui solve`: graph files in, distances, paths and summaries out."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from builders import documented_fields
from processes import Terminal
from scipy.sparse.csgraph import shortest_path

import fwtui
from fwtui.__main__ import main, parser
from fwtui.common.errors import Refused
from fwtui.common.version import RESULT_VERSION
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.graph_loader import load
from fwtui.graphs.summary import summarise
from fwtui.solver.call import Call
from fwtui.solver.command import SolveProgress, carry_out
from fwtui.solver.driver import answer
from fwtui.solver.output import summary_lines


def roads(side: int) -> tuple[int, np.ndarray]:
    """Return two-way streets on a grid, some missing: an array (arcs, 3) of from, to, metres."""
    rng = np.random.default_rng(3)
    at = np.arange(side * side).reshape(side, side)
    u = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    v = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    kept = rng.random(len(u)) < 0.85
    streets = np.column_stack([u, v, rng.integers(50, 400, len(u))])[kept]
    return side * side, np.concatenate([streets, streets[:, [1, 0, 2]]])


def solved(*words: str) -> None:
    """Run `fwtui solve` in this process without a GPU; raises its errors."""
    carry_out(parser("solve").parse_args(["solve", *words]), time.monotonic())


class TestAnswers:
    def test_a_road_network_end_to_end(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        n, arcs = roads(32)
        lines = [f"a {u + 1} {v + 1} {w}\n" for u, v, w in arcs.tolist()]
        (tmp_path / "roads.gr").write_text(f"c streets\np sp {n} {len(arcs)}\n{''.join(lines)}")
        out = tmp_path / "answer.npz"
        assert main(["solve", str(tmp_path / "roads.gr"), "-o", str(out), "--paths", "--summary"]) == 0
        said = capfd.readouterr()
        graph = scipy.sparse.coo_array((arcs[:, 2], (arcs[:, 0], arcs[:, 1])), shape=(n, n)).tocsr()
        expected = shortest_path(graph, method="D")
        with np.load(out) as saved:
            assert (saved["distances"] == expected).all() and saved["first"] == 1
            before = saved["predecessors"]
        reached = np.isfinite(expected) & ~np.eye(n, dtype=bool)
        source, target = np.nonzero(reached)
        last = before[source, target]
        weights = np.asarray(graph[last, target]).ravel()
        assert (expected[source, last] + weights == expected[source, target]).all()
        assert (before[~reached] == -9999).all()
        assert f"{expected[np.isfinite(expected)].max():,.0f}" in said.out
        assert "1,024 vertices" in said.err and "kernels" in said.err and "outside copies and kernels" in said.err

    def test_chosen_pairs(self, towns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pairs = tmp_path / "pairs.csv"
        pairs.write_text("source,target\nHamburg, Munich\n\nMunich,Berlin\nBerlin,Berlin\n")
        solved(towns, "--pairs", str(pairs), "--paths")
        rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
        assert rows[1:] == [
            ["Hamburg", "Munich", "1005", "Hamburg -> Cologne -> Munich"],
            ["Munich", "Berlin", "", ""],
            ["Berlin", "Berlin", "0", "Berlin"],
        ]
        solved(towns, "--pairs", str(pairs), "-o", str(tmp_path / "o.tsv"))
        assert (tmp_path / "o.tsv").read_text().splitlines()[1] == "Hamburg\tMunich\t1005"

    def test_one_path_on_the_screen(self, towns: str, capsys: pytest.CaptureFixture[str]) -> None:
        solved(towns, "--from", "Berlin", "--to", "Cologne")
        assert capsys.readouterr().out.splitlines() == [
            "from Berlin to Cologne: 719 over 2 edges",
            "  from     to       weight  distance",
            "  Berlin   Hamburg     289       289",
            "  Hamburg  Cologne     430       719",
        ]
        solved(towns, "--from", "Munich", "--to", "Berlin")
        assert capsys.readouterr().out == "there is no path from Munich to Berlin\n"
        solved(towns, "--from", "Munich", "--to", "Berlin", "--undirected")
        assert "585 over 1 edge\n" in capsys.readouterr().out

    def test_json(self, towns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        def rows(*words: str) -> list[dict[str, Any]]:
            solved(towns, "--json", *words)
            return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

        (found,) = rows()
        assert list(found) == documented_fields("`fwtui solve GRAPH --json`") and found["version"] == RESULT_VERSION
        assert (found["vertices"], found["edges"], found["answers"]["diameter"]) == (4, 4, 1005)
        (path,) = rows("--from", "Berlin", "--to", "Cologne")
        assert list(path) == documented_fields("and for each pair")
        assert (path["distance"], path["path"]) == (719, ["Berlin", "Hamburg", "Cologne"])
        (tmp_path / "pairs.csv").write_text("Munich,Berlin\nBerlin,Munich\n")
        pairs = ["--pairs", str(tmp_path / "pairs.csv")]
        assert [(row["source"], row["distance"], "path" in row) for row in rows(*pairs)] == [
            ("Munich", None, False),
            ("Berlin", 585, False),
        ]
        (found,) = rows(*pairs, "-o", str(tmp_path / "o.csv"))
        assert found["answers"] is None and "write" in found["seconds"]

    def test_npy_and_names(self, towns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        solved(towns, "-o", str(tmp_path / "o.npy"), "--dtype", "int32")
        assert np.load(tmp_path / "o.npy")[0].tolist() == [0, 289, 585, 719]
        assert "the vertices as they appear in the graph; .npz stores" in capsys.readouterr().err
        (tmp_path / "numbers.csv").write_text("30,10,5\n10,20,3\n")
        solved(str(tmp_path / "numbers.csv"), "-o", str(tmp_path / "n.npy"))
        assert np.load(tmp_path / "n.npy")[2].tolist() == [5, 8, 0], "the row of vertex 30"
        assert "the vertices in ascending order; .npz stores" in capsys.readouterr().err
        solved(towns, "-o", str(tmp_path / "o.npz"))
        assert np.load(tmp_path / "o.npz")["vertices"].tolist() == ["Berlin", "Hamburg", "Munich", "Cologne"]


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--from", "Berlin"], "pass both --from and --to"),
            (["--from", "Bonn", "--to", "Berlin"], "there is no vertex 'Bonn'"),
            (["--from", "a", "--to", "b", "--pairs", "p.csv"], "cannot be combined"),
            (["-o", "out.png"], "'out.png' ends in none of .npy, .npz, .csv, .tsv, .bin, .out"),
            (["-o", "towns.csv"], "towns.csv is the input, and would be overwritten; choose another name"),
            (["-o", "./towns.csv", "--pairs", "towns.csv"], "towns.csv is the input"),
            (["--pairs", "none.csv"], "none.csv cannot be read"),
            (["--pairs", "towns.csv", "-o", "o.npy"], "ends in none of .csv, .tsv; choose one of these for pairs"),
            (["--paths", "-o", "o.npy"], "cannot store paths; choose .npz"),
            (["--paths"], "pass -o OUT or --pairs FILE too"),
            (["--dtype", "int8"], "'int8' is not supported"),
            (["--kernel", "swift"], "there is no kernel 'swift'"),
            (["--device", "first"], "device 'first' is neither auto, cpu nor"),
        ],
    )
    def test_a_mistake_is_refused_in_one_sentence(
        self, towns: str, words: list[str], said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(Path(towns).parent)
        assert main(["solve", "towns.csv", *words]) == 2
        shown = capfd.readouterr()
        assert said in shown.err and shown.err.count("\n") == 1 and not shown.out

    def test_an_unwritable_place_is_refused_at_once(self, towns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fwtui.solver.command.load_lazily", lambda *_: pytest.fail("it was read first"))
        (tmp_path / "folder.npy").mkdir()
        for out, said in (("nowhere/o.npy", "no such file"), ("towns.csv/o.npy", "not a dir"), ("folder.npy", "is a directory")):
            with pytest.raises(Refused, match=said):
                solved(towns, "-o", str(tmp_path / out))

    def test_pairs_that_are_wrong(self, towns: str, tmp_path: Path) -> None:
        pairs = tmp_path / "pairs.csv"
        for text, said in (
            ("Berlin,Hamburg\nBerlin,Bonn\n", "pairs.csv, line 2: there is no vertex 'Bonn'"),
            ("Berlin\n", "pairs.csv, line 1 has 1 field"),
            ("source,target\n", "pairs.csv has no pairs"),
            ('"Berlin\n', "correct the quotes"),
            (b"\xff,a\n", "is not UTF-8"),
        ):
            pairs.write_bytes(text if isinstance(text, bytes) else text.encode())
            with pytest.raises(Refused, match=said):
                solved(towns, "--pairs", str(pairs))

    def test_negative_cycles_are_reported(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "g.csv").write_text("a,b,1\nb,c,-3\nc,a,1\n")
        assert main(["solve", str(tmp_path / "g.csv")]) == 1
        assert "negative cycle: " in capfd.readouterr().err


class TestProgress:
    def test_progress_is_a_share_and_the_time_left_on_a_terminal(self) -> None:
        now = 100.0
        screen = Terminal()
        progress = SolveProgress(screen, lambda: now)
        with progress.stage("4 vertices"):
            progress.report(0.1)
            assert not screen.getvalue(), "what is done at once is not worth a line"
            now = 102.0
            progress.report(0.25)
            assert "4 vertices: 25.0 %, 6.00 s left" in screen.getvalue()
            now = 102.05
            progress.report(0.3)
            assert screen.getvalue().count("left") == 1
        assert screen.getvalue().endswith("\r\x1b[K")
        file = io.StringIO()
        with SolveProgress(file).stage("x"):
            SolveProgress(file).report(0.5)
        assert not file.getvalue()

    def test_kernels_report_their_progress(self) -> None:
        n, arcs = roads(20)
        graph = Adjacency(n, arcs=Arcs(arcs[:, 0], arcs[:, 1], arcs[:, 2].astype(float)))
        for kernel in ("serial", "tiled-cpu"):
            told: list[float] = []
            answer(graph, Call(kernel=kernel, report_progress=told.append))
            assert told == sorted(told) and told[-1] <= 1 and len(told) > 4


@pytest.mark.parametrize("n", [1, 2, 33, 100])
def test_a_summary_has_sizes_and_text(n: int, tmp_path: Path) -> None:
    (tmp_path / "g.gr").write_text(f"p sp {n} {n - 1}\n" + "".join(f"a {v} {v + 1} 3\n" for v in range(1, n)))
    graph = load(str(tmp_path / "g.gr"))
    result = answer(graph)
    s = summarise(result.distances)
    assert s.counts.sum() == s.reachable == n * (n - 1) // 2 and s.heat.shape == (min(n, 16), min(n, 32))
    lines = summary_lines(s, graph.vertices, result.stats)
    assert max(map(len, lines)) < 100
    text = "\n".join(lines)
    assert (f"diameter           {3 * (n - 1)}, from 1 to {n}" in text) == (n > 1)
    assert "·" in text or n == 1
    assert n != 2 or text.endswith("no path\n░█\n·░")


@pytest.mark.parametrize("out", ["o.csv", *(pytest.param(out, marks=pytest.mark.slow) for out in ("o.npy", "o.npz"))])
def test_a_full_disk_is_reported_and_leaves_nothing(towns: str, tmp_path: Path, out: str) -> None:
    lines = [f"{v},{v + 1},1" for v in range(300)]
    Path(towns).write_text("\n".join(lines))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; exec '{sys.executable}' -P -m fwtui solve {towns} -o {out}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and sorted(os.listdir(tmp_path)) == ["towns.csv"]
    said = r"fwtui: o\.(npy|npz|csv) cannot be written: (file too large|no space left.*); choose another place\n"
    assert re.fullmatch(said, done.stderr)


CLOSED, FULL = (f"fwtui: writing the output failed: {why}\n" for why in ("Bad file descriptor", "No space left on device"))


INTERRUPTED = """
import os, signal, sys
from fwtui import __main__
from fwtui.solver import command

def told(*given):
    os.kill(os.getpid(), signal.SIGTERM)
    return 1
"""
COLLECTED = """
command.carry_out = lambda *given: type("Collected", (), {"__del__": told})()
"""
COMPILED = """
def compiling(*given):
    try:
        told()
    except BaseException:
        raise RuntimeError("no compiled object yet") from None

command.carry_out = compiling
"""


class TestStopping:
    @pytest.mark.parametrize("where", [COLLECTED, pytest.param(COMPILED, marks=pytest.mark.slow)], ids=["lost", "another"])
    def test_a_signal_ends_the_command_at_any_place(self, towns: str, where: str) -> None:
        """A finalizer swallows exceptions, and a compiler replaces them."""
        code = INTERRUPTED + where + "sys.exit(__main__.main())\n"
        process = subprocess.run([sys.executable, "-P", "-c", code, "solve", towns], capture_output=True, text=True)
        assert (process.returncode, process.stdout, process.stderr) == (128 + signal.SIGTERM, "", "")

    @pytest.mark.parametrize(
        ("command", "how", "code", "said"),
        [
            ("solve towns.csv", ">&-", 1, CLOSED),
            ("list", "<&- >&- 2>&-", 1, ""),
            pytest.param("--help", ">/dev/full", 1, FULL, marks=pytest.mark.slow),
            pytest.param("nonsense", "2>/dev/full", 2, "", marks=pytest.mark.slow),
            ("solve towns.csv", "2>/dev/full", 0, ""),
            pytest.param("solve towns.csv", "| true", 0, "", marks=pytest.mark.slow),
        ],
    )
    def test_streams_that_are_closed_full_or_left(self, towns: str, command: str, how: str, code: int, said: str) -> None:
        """The terminal's encoding cannot represent all characters of the output."""
        done = subprocess.run(
            ["sh", "-c", f"'{sys.executable}' -P -m fwtui {command} {how}"],
            cwd=Path(towns).parent,
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(fwtui.__file__).parents[1])},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code and "Traceback" not in done.stderr and done.stderr.endswith(said)

    def test_file_names_that_are_not_utf_8(self, towns: str, capfd: pytest.CaptureFixture[str]) -> None:
        strange = os.path.join(os.path.dirname(towns), os.fsdecode(b"caf\xe9.csv"))
        os.rename(towns, strange)
        assert main(["solve", strange, "-o", strange.replace("caf", "out")]) == 0
        assert os.path.exists(strange.replace("caf", "out"))
        assert main(["solve", strange, "--from", os.fsdecode(b"caf\xe9"), "--to", "Berlin"]) == 2
        assert "there is no vertex 'caf'" in capfd.readouterr().err
