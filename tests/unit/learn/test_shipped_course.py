"""The course that is shipped: every step stands on its recording, and its words hold there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from course_files import FIRST

from fwtui.__main__ import main
from fwtui.learn.course import load_course, step_named
from fwtui.learn.lessons import Lessons, lessons, session_path
from fwtui.learn.placeholders import FILLED
from fwtui.sessions.folders import shipped_folder
from fwtui_kernels import registry

SHIPPED = shipped_folder()


@pytest.fixture(scope="module")
def shipped() -> Lessons:
    return lessons()


class TestShipped:
    def test_every_step_stands_on_its_recording(self, shipped: Lessons) -> None:
        assert list(shipped.problems()) == []
        for step in shipped.course:
            cited = shipped.cited(step)
            assert cited.run.verified and cited.run.seconds and cited.run.experiment.kernel == step.written.kernel
            assert session_path(SHIPPED, cited.session).is_file()
            answer = shipped.answer(step)
            assert answer.words and (answer.right or answer.number)
            if answer.right:
                assert set(answer.right) <= {choice.key for choice in shipped.choices(step)}
                assert len(shipped.choices(step)) > 1

    def test_what_the_words_claim_holds_in_the_runs_they_cite(self, shipped: Lessons) -> None:
        runs = {step.name: shipped.cited(step).run for step in shipped.course}
        answers = {step.name: shipped.answer(step) for step in shipped.course}
        theory = {name: run.main_occupancy for name, run in runs.items()}

        def shared(name: str) -> int:
            told = theory[name]
            assert told is not None
            return told.shared_bytes

        def share(name: str, phase: str) -> float:
            return next(p.share for p in runs[name].phases if p.key == phase)

        naive, blocked = runs["naive"], runs["blocked"]
        assert naive.steps == naive.n, "one launch does one k"
        assert naive.device_bytes / blocked.device_bytes == pytest.approx(blocked.experiment.tile, rel=0.05), "tile times less"
        peak = shipped.answer(step_named(shipped.course, "memory")).number
        assert peak is not None and peak > 0.5 and blocked.bandwidth and naive.bandwidth
        memory = shipped.cited(step_named(shipped.course, "memory"))
        evidence = memory.model.evidence(memory.run)
        assert evidence is not None and evidence.dram_utilisation is not None, "GPM read it"
        assert evidence.dram_utilisation < peak * 0.6, "caches answered much"
        assert blocked.bandwidth < naive.bandwidth / 3.5, "memory is not what it waits for any more"
        assert share("phases", "pivot") > share("blocked", "pivot"), "the smaller the graph, the more the first two weigh"
        assert share("phases", "panels") > share("blocked", "panels")
        assert {runs[name].relaxations for name in ("blocked", "instructions", "registers", "layout")} == {blocked.relaxations}
        assert shared("instructions") * 2 == shared("registers") * 3, "two tiles instead of three"
        assert shared("slices") < shared("registers") and shared("slices") == shared("layout"), "it shrinks"
        assert answers["slices"].right == ("registers",)
        few, many = theory["arithmetic"], theory["layout"]
        assert few is not None and many is not None and few.warps < many.warps, "few warps fit"
        quicker = ("naive", "blocked", "cores", "instructions", "layout", "arithmetic", "look-ahead")
        assert all((answers[name].number or 0) > 1 for name in quicker)
        assert share("arithmetic", "pivot") > share("instructions", "pivot"), "the faster the rest, the more the pivot weighs"
        assert runs["limit"].n > runs["look-ahead"].n and (runs["limit"].rate or 0) > (runs["look-ahead"].rate or 0)
        assert 0.5 < (answers["limit"].number or 0) < 1
        several = runs["several"]
        assert several.device_count == 2 and 1.5 < (answers["several"].number or 0) < 2, "most of two GPUs"
        assert share("several", "broadcast") + share("several", "wait") < 0.3, "there is enough to hide it"

    def test_the_step_about_sparse_graphs_compares_two_runs_on_one_grid(self, shipped: Lessons) -> None:
        step = step_named(shipped.course, "sparse")
        cited, before = shipped.cited(step), shipped.before(step)
        assert before is not None and before.run.experiment.kernel == "look-ahead" and before.model is cited.model
        assert before.run.experiment.graph == cited.run.experiment.graph and cited.run.experiment.kind == "grid"
        assert 0.5 < (cited.run.rate or 0) / (before.run.rate or 1) < 1, "each a little slower"
        fewer = before.run.needed / cited.run.needed
        assert f"{fewer:.1f}x fewer relaxations" in " ".join(shipped.lines(step, step.written.afterwards))
        assert [one.kind for one in shipped.here(step, gpu=False)] == ["grid", "grid"]

    def test_the_course_goes_up_the_ladder_and_is_listed(self, shipped: Lessons, capsys: pytest.CaptureFixture[str]) -> None:
        kernels = [step.written.kernel for step in shipped.course]
        assert kernels[0] == "serial" and "look-ahead" in kernels
        ladder = list(registry())
        written = [step.written for step in shipped.course if not step.written.prompts]  # those are a goal, not a rung
        gpu = [ladder.index(step.kernel) for step in written if registry()[step.kernel].backend == "cuda"]
        assert gpu == sorted(gpu), "no later rung before an earlier one"
        assert {step.kind.name for step in shipped.course} >= {"seconds", "speedup", "peak", "phase", "limiter"}
        assert main(["learn", "--list", "blocked"]) == 2
        refusal = capsys.readouterr()
        assert not refusal.out and "--list prints all steps, not 'blocked' alone" in refusal.err
        assert main(["learn", "--list"]) == 0
        name, empty, *rows = capsys.readouterr().out.splitlines()
        rates = [shipped.cited(step).run.rate or 0.0 for step in shipped.course]
        said = f"From {rates[0] / 1e9:.2f} billion to {max(rates) / 1e12:.1f} trillion relaxations a second"
        assert name == f"{said}, in about {shipped.minutes} minutes" and not empty
        assert len(rows) == 1 + len(shipped.course) and all(row.endswith("ready") for row in rows[1:])
        assert main(["learn", "no-such-step"]) == 2
        assert "there is no step 'no-such-step'" in capsys.readouterr().err

    def test_the_example_of_the_documentation_is_a_step(self, tmp_path: Path) -> None:
        (block,) = re.findall(r"```toml\n(.*?)```", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        (tmp_path / "01-naive.toml").write_text(FIRST)
        (tmp_path / "02-tiles.toml").write_text(block)
        assert load_course(tmp_path)[1].against == 0
        (line,) = re.findall(r"\nNames: (.*?);\n", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert set(re.findall(r"`([a-z.]+)`", line.partition("; each")[0])) == set(FILLED)
