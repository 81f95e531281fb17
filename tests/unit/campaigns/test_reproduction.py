"""Reproductions of papers: runs, skipped runs, counters, and the command that evaluates the claims."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_sessions import Made, MadeLive, int32
from msgspec.structs import replace
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.campaigns.claims import HOLDS, PAPERS, REFUTED, UNTESTABLE, evaluate, papers
from fwtui.campaigns.reproduction import Reproduction
from fwtui.common.exit_codes import OK, USAGE
from fwtui.stream import events


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_paper_requests_options_that_its_kernels_have(name: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reproduction, "_from_files", lambda *_: iter(()))
    live: Any = MadeLive(Made())
    paper = replace(papers()[name], seconds=1e9)
    monkeypatch.setattr("fwtui.campaigns.reproduction.QUICK_SECONDS", 1e9)
    reproduction = Reproduction(live, paper, True, quick, lambda text: None)
    reproduction.runner.run()
    assert not live.refused and 5 <= len(live.started) <= 70, "a recorded session would be too large"
    found = {claim.id: evaluate(claim, reproduction.evidence) for claim in paper.claim}
    needs_more = {*["HE5", "HE6", "HE7", "CS1", "CS6", "SF9", "SF11", "CA3", "CA8", "CA10", "LS6", "LS10", "LS11"]}  # than times
    assert {key for key, answer in found.items() if answer.verdict == UNTESTABLE} <= needs_more, found


def test_without_a_gpu_what_needs_one_is_skipped_and_named_once() -> None:
    live: Any = MadeLive(Made(gpu=None))
    reproduction = Reproduction(live, papers()["lund-smith"], False, True, lambda text: None)
    reproduction.runner.run()
    assert live.started[0].kernel == "serial"
    skipped = reproduction.evidence.skipped()
    assert "naive: needs a GPU" in skipped and len(skipped) == len({*skipped})
    claim = next(claim for claim in papers()["lund-smith"].claim if claim.id == "LS4")
    assert evaluate(claim, reproduction.evidence).reason == "naive: needs a GPU"


def test_a_graph_file_is_written_for_each_size() -> None:
    live: Any = MadeLive(Made(gpu=None))
    reproduction = Reproduction(live, papers()["cs542200"], False, True, lambda text: None)
    for wanted in reproduction._from_files("tiled-cpu", (9,)):
        assert Path(wanted.file).read_text().startswith("c fwtui") and (wanted.kernel, wanted.dtype) == ("tiled-cpu", "int32")
    assert not reproduction.evidence.skipped()


def test_counters_are_profiled_separately_until_some_are_missing() -> None:
    live: Any = MadeLive(Made().add(int32("katz-kider", 1024, tile=8)).add(int32("katz-kider", 4096, tile=8)))
    asked: list[int] = []

    def count(number: int) -> None:
        asked.append(number)
        n = live.model.runs[number].n
        if len(asked) == 1:
            live.model.apply(events.Counters(t=0.0, run=number, op="rest", values={"gops": float(n)}))

    live.count = count
    said: list[str] = []
    reproduction = Reproduction(live, papers()["cs542200"], True, True, said.append)
    reproduction.count()
    assert reproduction.evidence.counter("katz-kider tile=8", 1024, "gops") == 1024.0
    assert "no counters of blocked-branch: blocked-branch was not run" in said
    live.model.runs[asked[0]] = replace(live.model.runs[asked[0]], counted=())
    before = len(asked)
    reproduction.count()
    assert len(asked) == before + 1, "the profiler works for none"


def test_a_whole_paper_without_a_gpu_and_again_from_its_recording(
    pretend: Pretend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend.driver(False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    sing = papers()["sing"]
    small = replace(sing, runs=tuple(replace(group, n=(12,), quick=(12,), cpu=(12,)) for group in sing.runs))
    monkeypatch.setattr("fwtui.commands.reproduce.papers", lambda: {**papers(), "sing": small})
    path = tmp_path / "sing.fwt.jsonl"
    assert main(["reproduce", "sing", "--quick", "--telemetry-hz", "0", "--record", str(path), "--json"]) == OK
    live = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    answers = {row["id"]: row["answer"] for row in live}
    assert [*answers] == [claim.id for claim in sing.claim] and answers["SF4"] == UNTESTABLE
    assert answers["SF9"] in (HOLDS, REFUTED)
    assert path.stat().st_size < 80_000 and main(["reproduce", "sing", "--from", str(path), "--json"]) == OK
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == live
    assert main(["reproduce", "sing", "--from", str(path)]) == OK
    shown = capsys.readouterr().out
    assert "SF4 not testable here: naive: needs a GPU" in shown and "Skipped: naive: needs a GPU" in shown and "Rule:" in shown


def test_a_recording_is_not_recorded_and_all_papers_take_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for words, said in ((["sing", "--from", "x"], "cannot be combined"), (["all"], "folder")):
        assert main(["reproduce", *words, "--record", str(tmp_path / "file")]) == USAGE
        assert said in capsys.readouterr().err
