"""The specification of the format: its examples work, and old files open."""

import gzip
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from processes import DATA

from fwtui.sessions.folders import PACKED, SUFFIX, shipped_folder
from fwtui.sessions.library import model_of
from fwtui.sessions.reader import load
from fwtui.stream import events


def test_every_version_has_its_golden_file() -> None:
    names = {path.name for path in DATA.glob(f"golden-v*{SUFFIX}")}
    assert {f"golden-v{version}{SUFFIX}" for version in range(1, events.VERSION + 1)} <= names
    for name in names:
        assert load(DATA / name).complete


@pytest.mark.parametrize("pandas", ["pandas", ""], ids=["pandas", "what stands for it"])
def test_the_readme_reads_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pandas: str) -> None:
    pd = pytest.importorskip(pandas) if pandas else MagicMock()
    (block,) = re.findall(r"```python\n(.*?)```", (shipped_folder() / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(block.splitlines()) <= 12
    path = shipped_folder() / f"lecture-tiles{PACKED}"
    (tmp_path / "a.fwt.jsonl").write_bytes(gzip.decompress(path.read_bytes()) + b'{"kind":"torn')
    monkeypatch.chdir(tmp_path)
    printed: list[Any] = []
    exec(block.replace("import pandas as pd\n", ""), {"pd": pd, "print": printed.append})  # noqa: S102  (our own README)
    runs = model_of(load(path).lines).runs.values()
    if pandas:
        assert dict(printed[0]) == {run.id: run.n**3 / run.done.median for run in runs if run.done and run.done.median}
    else:
        planned, done, phases, *_ = (call.args[0] for call in pd.DataFrame.call_args_list)
        assert [(row["run"], row["n"]) for row in planned] == [(run.id, run.n) for run in runs]
        assert [row["median"] for row in done] == [run.done.median for run in runs if run.done]
        assert [(row["run"], row["phase"], row["seconds"]) for row in phases] == [
            (run.id, part.key, part.seconds) for run in runs for part in run.phases
        ]
