"""The READMEs: their commands parse, and their statements about the program are true."""

import re
import shlex
import tomllib
from inspect import signature
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from processes import ROOT

from fwtui import __version__
from fwtui.__main__ import parser
from fwtui.commands import COMMANDS
from fwtui.common import units
from fwtui.sessions.library import load_model, resolve
from fwtui_kernels import registry
from fwtui_kernels.compiled.simulator_intrinsics import relax_tile
from fwtui_kernels.forms import FORMS


def test_the_readme_can_be_read_at_once() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_commands_of_the_readme_are_understood() -> None:
    readme = re.sub("<!--.*-->", "", (ROOT / "README.md").read_text())
    code = re.findall(r"`([^`\n]+)`", readme) + re.findall(r"(?m)^    (\S.*?)(?:  +#.*)?$", readme)
    told = [words.partition("fwtui ")[2] for words in code if re.match(r"(.* )?fwtui [a-z]", words)]
    taken = []
    for words in (shlex.split(text.replace("\\|", "|").partition(" | ")[0]) for text in told):
        if words[0] in COMMANDS and len(words) > 1 and not {"COMMAND", "--help"} & set(words):
            _, unknown = parser(words[0]).parse_known_args([word.strip("[]") for word in words])
            assert not set(unknown) - {"..."}, words
            taken.append(words[0])
    assert len(set(taken)) > 6


def test_the_project_says_how_many_kernels_there_are_and_its_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f" {len(registry())} " in project["description"]
    assert project["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_loop_that_explains_relax_tile_does_what_it_does(dtype: str, tmp_path: Path) -> None:
    """The README's loop is written by hand; the simulated intrinsic gives the same numbers."""
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


def test_the_tables_of_results_are_those_of_the_recordings() -> None:
    models = [load_model(resolve(name))[0] for name in ("h200-champion", "h200-ladder-n4096")]
    recorded = {(run.experiment.kernel, units.duration(run.seconds)) for model in models for run in model.runs.values()}
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "kernels" / "README.md"))
    shown = {row for text in texts for row in re.findall(r"\| `([\w-]+)` \|[^\n]*?\| (\d[\d.]* [um]?s)(?:\\\*)? \|", text)}
    assert len(shown) > 40 and shown <= recorded
