"""The generated parts of the README: from the kernels and from a session, never from anybody's memory."""

import re
import shlex
import tomllib
from inspect import signature
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from builders import run_events
from pretending import Pretend

from fwtui import __version__
from fwtui.__main__ import main, parser
from fwtui.commands import docs, names
from fwtui.commands.support import readme_parts
from fwtui.commands.support.readme_parts import LADDER_N, PARTS, READMES, ROOT, champion, ladder, rewrite
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events
from fwtui_kernels import registry
from fwtui_kernels.compiled.simulator_intrinsics import relax_tile
from fwtui_kernels.forms import FORMS

EMPTY = (
    "# A\n\n<!-- ladder: made by fwtui docs -->\n<!-- end of ladder -->\n"
    "b\n<!-- champion: made by fwtui docs -->\n<!-- end of champion -->\n"
    "<!-- kernels: made by fwtui docs -->\nold\n<!-- end of kernels -->\nc\n"
    "<!-- course: made by fwtui docs -->\n<!-- end of course -->\n"
)


def run(
    number: int,
    kernel: str,
    seconds: float,
    n: int = LADDER_N,
    verdict: str = "verified",
    dtype: str = "float32",
    negative: float = 0.0,
) -> list[events.Event]:
    e = Experiment(kernel=kernel, n=n, dtype=dtype, negative=negative)
    return run_events(e, run=number, seconds=seconds, verdict=verdict)


def session(folder: Path, name: str, title: str, *told: list[events.Event], created: str = "2026-01-02T03:04:05Z") -> Path:
    machine = events.Machine(cpu="A CPU")
    header = events.Header(t=0, program="fwtui test", created=created, title=title, machine=machine)
    recorder = Recorder.at(folder / f"{name}.fwt.jsonl", header)
    device = events.Device(t=0, name="A GPU | with a bar", driver="580.1", cuda="13.0")
    for event in (device, *(e for run in told for e in run)):
        recorder.write(codec.as_line(event))
    recorder.close()
    return recorder.path


def cells(lines: list[str]) -> dict[str, list[str]]:
    """Kernel -> the other cells of its row."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in rows}


class TestLadder:
    def test_every_rung_with_what_it_gained(self, tmp_path: Path) -> None:
        session(
            tmp_path,
            "a",
            "ladder on a GPU",
            [events.Limits(t=0.5, backend="cuda", forms=(events.FormLimit("float32", 1e12),), complete=True)],
            run(1, "naive", 0.4),
            run(2, "katz-kider", 0.1),
            run(3, "katz-kider", 0.05),
            run(4, "tiled-cpu", 8.0),
            run(5, "two-matrices", 0.001, verdict="wrong"),
            run(6, "serial", 0.001, n=512),
            run(7, "naive-vector", 0.2, dtype="int16"),
            run(8, "blocked-vector", 0.05, dtype="int16"),
        )
        lines = ladder(tmp_path)
        rows = cells(lines)
        assert list(rows) == list(registry()), "in the ladder's order"
        assert rows["tiled-cpu"][1:] == ["float32", "8.00 s", f"{LADDER_N**3 / 8 / 1e9:.2f} G", "0.9 %", "n/a", "1/20"]
        assert rows["naive"][1:] == ["float32", "400 ms", "172 G", "17.2 %", "20.0x", "1.00x"], (
            "against the rung before that has a time"
        )
        assert rows["katz-kider"][1:] == ["float32", "50.0 ms", "1.37 T", "137 %", "8.00x", "8.00x"], "its fastest run"
        assert rows["naive-vector"][1:] == ["int16", "200 ms", "344 G", "n/a", "n/a", "n/a"], "no other run of that type yet"
        assert rows["blocked-vector"][5:] == ["4.00x", "n/a"], "the rung before of its type"
        for absent in ("serial", "two-matrices"):
            assert rows[absent][1:] == ["n/a"] * 6, "another size, or a wrong result, is no number"
        assert rows["naive"][0] == registry()["naive"].summary
        assert "A GPU | with a bar, driver 580.1, CUDA 13.0, A CPU, on 2026-01-02; `fwtui replay a`." in lines[-1]

    def test_no_session_no_words_and_else_the_newest_of_that_title(self, tmp_path: Path) -> None:
        assert ladder(tmp_path) == []
        session(tmp_path, "a", "demo", run(1, "naive", 0.4))
        assert ladder(tmp_path) == [] == ladder(tmp_path / "nowhere")
        session(tmp_path, "z-old", "Ladder", run(1, "naive", 0.4), created="2025-01-01T00:00:00Z")
        session(tmp_path, "a-new", "ladder, again", run(1, "naive", 0.3), created="2026-01-01T00:00:00Z")
        session(tmp_path, "m-other", "ladders and snakes", run(1, "naive", 0.2), created="2027-01-01T00:00:00Z")
        (tmp_path / "broken.fwt.jsonl").write_text("{")
        assert cells(ladder(tmp_path))["naive"][2] == "300 ms"


def test_the_champion_at_every_size_that_was_verified(tmp_path: Path) -> None:
    assert champion(tmp_path) == []
    session(
        tmp_path,
        "c",
        "Champion, two sizes",
        [events.Limits(t=0.5, backend="cuda", forms=(events.FormLimit("int32", 1e12),), complete=True)],
        run(1, "look-ahead", 0.008, n=2000, dtype="int32"),
        run(2, "look-ahead", 0.001, n=1000, dtype="int32"),
        run(3, "look-ahead", 0.002, n=1000, dtype="int32", negative=0.2),
        run(4, "look-ahead", 0.001, n=500, verdict="wrong"),
    )
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in champion(tmp_path)[2:-2]]
    assert rows == [
        ["1000", "int32", "none negative", "`look-ahead`", "-", "1.00 ms", "1.00 T", "100 %"],
        ["1000", "int32", "any", "`look-ahead`", "-", "2.00 ms", "500 G", "50.0 %"],
        ["2000", "int32", "none negative", "`look-ahead`", "-", "8.00 ms", "1.00 T", "100 %"],
    ]
    assert champion(tmp_path)[-1].startswith("Verified runs: A GPU") and ladder(tmp_path) == []


class TestRewrite:
    @pytest.fixture
    def readme(self, tmp_path: Path, pretend: Pretend) -> Path:
        pretend.shipped(tmp_path)
        path = tmp_path / "README.md"
        path.write_text(EMPTY)
        return path

    def test_check_fails_on_a_changed_copy_and_leaves_it_alone(self, readme: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["docs", str(readme)]) == 0
        assert main(["docs", "--check", str(readme)]) == 0
        capsys.readouterr()
        for changed in (
            readme.read_text().replace("| `naive` |", "| `naiver` |"),
            readme.read_text().replace("<!-- end of ladder", "by hand\n<!-- end of ladder"),
        ):
            readme.write_text(changed)
            assert main(["docs", "--check", str(readme)]) == 1
            assert capsys.readouterr().err == "fwtui: README.md is not what `fwtui docs` makes; run it\n"
            assert readme.read_text() == changed
        session(readme.parent, "a", "ladder", run(1, "naive", 0.4))
        assert main(["docs", str(readme)]) == 0 and "400 ms" in readme.read_text()
        assert main(["docs", "--check", str(readme)]) == 0
        session(readme.parent, "b", "ladder", run(1, "naive", 0.2), created="2030-01-01T00:00:00Z")
        assert main(["docs", "--check", str(readme)]) == 1, "a newer session makes it stale"

    def test_every_readme_is_looked_at_and_a_part_without_a_place_is_not_made(self, readme: Path) -> None:
        other = readme.parent / "kernels" / "README.md"
        other.parent.mkdir()
        other.write_text("<!-- kernels: made by fwtui docs -->\n<!-- end of kernels -->\n")
        root = readme.parent
        assert docs.remade((readme, other), False, root) == ["README.md", "kernels/README.md"]
        assert docs.remade((readme, other), True, root) == []
        other.write_text(other.read_text().replace("| `naive` |", "| `naiver` |"))
        assert docs.remade((readme, other), True, root) == ["kernels/README.md"]
        readme.write_text("# B\n<!-- kernels: made by fwtui docs -->\n<!-- end of kernels -->\nlast\n")
        assert rewrite(readme) is True
        text = readme.read_text()
        assert list(cells(text.splitlines())) == list(registry()) and text.endswith("<!-- end of kernels -->\nlast\n")
        assert "course" not in text and rewrite(readme) is False

    @pytest.mark.parametrize(
        "text",
        [
            "nothing\n",
            EMPTY.replace("<!-- end of ladder -->\n", ""),
            EMPTY + EMPTY,
            "<!-- end of ladder -->\n" + EMPTY.replace("<!-- end of ladder -->\n", ""),
        ],
    )
    def test_markers_that_are_not_there_once_are_named(self, readme: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
        readme.write_text(text)
        assert main(["docs", str(readme)]) == 2
        assert "ladder: made by fwtui docs" in capsys.readouterr().err and readme.read_text() == text

    def test_no_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["docs", str(tmp_path / "README.md")]) == 2
        assert "README.md cannot be read: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_readmes_are_up_to_date(readme: Path) -> None:
    assert rewrite(readme, check=True) is False, "run `fwtui docs`"


def test_every_part_has_a_place_and_the_readme_can_be_read_at_once() -> None:
    for name in PARTS:
        assert any(f"<!-- {name}: made by fwtui docs -->" in readme.read_text() for readme in READMES), name
    assert len(README.splitlines()) <= 150


README, COMMANDS = (path.read_text() for path in (readme_parts.README, ROOT / "fwtui" / "commands" / "README.md"))


def test_the_commands_of_the_readme_and_of_their_page_are_understood() -> None:
    code = [words for page in (README, COMMANDS) for words in re.findall(r"`([^`\n]+)`", re.sub("<!--.*-->", "", page))]
    told = [words.partition("fwtui ")[2] for words in code if re.match(r"(.* )?fwtui [a-z]", words)]
    taken = []
    for words in (shlex.split(text.replace("\\|", "|").partition(" | ")[0]) for text in told):
        if words[0] in names() and len(words) > 1 and not {"COMMAND", "--help"} & set(words):
            _, unknown = parser(words[0]).parse_known_args([word.strip("[]") for word in words])
            assert not set(unknown) - {"..."}, words
            taken.append(words[0])
    assert len(set(taken)) > 15


def test_the_project_says_how_many_kernels_there_are_and_its_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f" {len(registry())} " in project["description"]
    assert project["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_loop_that_explains_relax_tile_does_what_it_does(dtype: str, tmp_path: Path) -> None:
    """It is written for a reader, so nothing makes it from the source: the intrinsic's twin gives the same numbers."""
    written = re.findall(
        r"```python\n(def relax_tile\(.*?)```", (ROOT / "kernels" / "README.md").read_text(encoding="utf-8"), re.S
    )
    (tmp_path / "written.py").write_text("\n".join(written))
    as_explained = run_path(str(tmp_path / "written.py"))["relax_tile"]
    assert len(written) == 1 and signature(as_explained).parameters.keys() == signature(relax_tile).parameters.keys()
    form = next(number for number, form in enumerate(FORMS) if form.dtype == dtype and not form.two)
    rows, columns, high, wide, depth, rng = 8, 8, 32, 64, 3, np.random.default_rng(1)
    to, middle = (rng.integers(1, 100, length * (depth + 1)).astype(dtype) for length in (high, wide))
    explained = rng.integers(50, 200, rows * columns).astype(dtype)
    relaxed = explained.copy()
    for loop, best in ((as_explained, explained), (relax_tile, relaxed)):
        loop(best, to, 4, middle, 8, rows, columns, high, wide, depth, form)
    assert explained.tolist() == relaxed.tolist()
