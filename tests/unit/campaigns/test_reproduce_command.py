"""The command `fwtui reproduce`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNTESTABLE
from fwtui.campaigns.reproduce.preset import RunScale
from fwtui.campaigns.reproduce.results import Results
from fwtui.common.exit_codes import OK, USAGE
from fwtui.experiment.experiment import Experiment, changed


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, pretend: Pretend, tmp_path: Path) -> None:
    """A machine without a GPU, and graphs of a few vertices."""
    pretend.driver(False)
    small = presets()["sing"]

    def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
        return (changed(wanted, n=12) for wanted in small.runs(results, scale) if isinstance(wanted, Experiment))

    monkeypatch.setattr("fwtui.commands.reproduce.presets", lambda: {"sing": replace(small, runs=runs)})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_whole_preset_without_a_gpu_and_again_from_its_recording(
    no_gpu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sing.fwt.jsonl"
    assert main(["reproduce", "sing", "--quick", "--telemetry-hz", "0", "--record", str(path), "--json"]) == OK
    live = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in live] == [claim.id for claim in presets()["sing"].claims]
    answers = {row["id"]: row["answer"] for row in live}
    # passes of a microsecond may differ too much to tell
    assert answers["SF6"] in (HOLDS, REFUTED) or "too noisy" in next(row["reason"] for row in live if row["id"] == "SF6")
    assert answers["SF9"] in (HOLDS, REFUTED)
    assert answers["SF4"] == UNTESTABLE
    assert path.stat().st_size < 80_000
    assert main(["reproduce", "sing", "--from", str(path), "--json"]) == OK
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == live
    assert main(["reproduce", "sing", "--from", str(path)]) == OK
    shown = capsys.readouterr().out
    assert "SF4 not testable here: naive: needs a GPU" in shown and "Left out: naive: needs a GPU" in shown and "Rule:" in shown


def test_recording_and_a_recorded_session_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "sing", "--from", "x", "--record", "y"]) == USAGE
    assert "do not go together" in capsys.readouterr().err


def test_all_records_one_session_for_each_document_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "all", "--record", str(tmp_path / "file")]) == USAGE
    assert "folder" in capsys.readouterr().err
