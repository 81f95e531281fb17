"""The README's pictures are what `fwtui render` and `fwtui export` draw, and `fwtui docs` draws them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fwtui.commands.docs import redraw
from fwtui.commands.support.readme_parts import README
from fwtui.common.errors import Refused

GOLDEN = README.parent / "tests" / "data" / "golden-v1.fwt.jsonl"


def readme(folder: Path, words: str) -> Path:
    path = folder / "README.md"
    path.write_text(f"# a\n\n<!-- picture: fwtui render {words} -->\n![b](b.svg)\n")
    return path


def test_a_picture_is_drawn_once_and_checked(tmp_path: Path) -> None:
    path = readme(tmp_path, f"'{GOLDEN}' --at 1 --size 60x16 -o b.svg")
    assert redraw(path, check=True) == ["b.svg"] and not (tmp_path / "b.svg").exists()
    assert redraw(path) == ["b.svg"]
    drawn = (tmp_path / "b.svg").read_bytes()
    assert drawn.startswith(b"<svg") and redraw(path, check=True) == [] == redraw(path)
    (tmp_path / "b.svg").write_bytes(drawn[:-1])
    assert redraw(path, check=True) == ["b.svg"]
    readme(tmp_path, f"'{GOLDEN}' --at 1 --size 60x17 -o b.svg")
    assert redraw(path, check=True) == ["b.svg"], "another size is another picture"


def test_of_a_picture_that_moves_a_check_looks_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"<!-- picture: fwtui export '{GOLDEN}' --size 60x16 --to 0.5 --fps 1 -o b.svg -->\n![b](b.svg)\n")
    assert redraw(path, check=True) == ["b.svg"] == redraw(path)
    assert redraw(path, check=True) == []
    drawn = (tmp_path / "b.svg").read_text()
    (tmp_path / "b.svg").write_text(drawn.replace("golden-v1", "other"))
    assert redraw(path, check=True) == ["b.svg"]


@pytest.mark.parametrize("words", ["", "x", "x --size -o", "'x -o y.svg", f"{GOLDEN} --wrong -o y.svg", f"{GOLDEN} -o y.png"])
def test_what_is_no_command_is_refused(tmp_path: Path, words: str) -> None:
    path = readme(tmp_path, words)
    if words:
        with pytest.raises(Refused):
            redraw(path)
    else:
        assert redraw(path) == [], "a comment of another kind"


def test_the_readmes_pictures_are_up_to_date(tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXTUAL", "FWTUI"))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fwtui", "docs", "--check"],
        env={**clean, "PYTHONPATH": str(README.parent), "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), "run `fwtui docs`"
    assert "<!-- picture: fwtui export " in README.read_text()
