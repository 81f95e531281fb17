"""Agreement of the numbers on the Run and Explain screens, read from their text for each recorded run."""

import re
from pathlib import Path

import pytest
from apps import replay_at_end
from pressing import opened, settled
from recorded_sessions import SESSION

from fwtui.analysis.bottleneck import counters_of
from fwtui.analysis.causes import hints, stall_gains
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.disturbances import timers_distort
from fwtui.analysis.explanation import explain
from fwtui.analysis.limits import limit_of
from fwtui.analysis.phase_table import LAUNCHES, PEAK_ERROR, UNKNOWN, phase_rows, roofs_of
from fwtui.analysis.warps import ELIGIBLE, loop_facts, main_samples, percentages, samples_of
from fwtui.common import units
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.explain.number_panels import PhaseTable, PhaseTableSubject
from fwtui.tui.explain.roofline import DRAM, figure, intensity
from fwtui.tui.explain.warp_panel import MAX_REASONS, warp_subject
from fwtui.tui.widgets import run_text
from fwtui.tui.widgets.run_text import RunSubject

WIDTH = 160
RECORDINGS = [*sorted(SESSION.parent.glob("*.jsonl.gz")), *sorted(shipped_folder().glob("h200-[clnt]*.jsonl.gz"))]
SHARE = re.compile(r"([\d.]+) %(.*?)(?=[\d.]+ %|$)")
# what a share on these screens is a share of: in its sentence, the words after the number
WHOLES = ("busy", "of ", "and", "slower")
NAMED_BEFORE = ("issued", "selected", "throttle", "occupancy only")  # shares of PC samples, and of an SM's warps


def text_rows(run: Run, model: Model) -> dict[str, tuple[str, str]]:
    """Map the phases of the Run screen to their time and share."""
    shown = [one.plain for one in run_text.phases(subject(run, model), WIDTH)[1:]]
    cells = [re.fullmatch(r"(.{16}).*?(\S+ \S+)\s+(\S+ %)", row) for row in shown]
    return {one[1][: run_text.NARROW_LABEL - 1].strip(): (one[2], one[3]) for one in cells if one is not None}


def subject(run: Run, model: Model) -> RunSubject:
    return RunSubject(run, model.evidence(run), model.gpu_of(run), None, True, limit_of(model, run))


async def test_the_shares_of_a_cpu_run_name_busy_cores_or_all_cores() -> None:
    async with opened(replay_at_end(shipped_folder() / "lecture-own-kernel.fwt.jsonl.gz", "explain")) as pilot:
        text = " ".join(re.sub(r"│.*", "", row) for row in (await settled(pilot)).splitlines())
    text = re.sub(r"\s+", " ", text)
    sentence = re.search(r"of the bandwidth of its busy cores, compute (\d+) % of the peak rate of its busy cores", text)
    panel = re.search(r"per cycle \S+ [\d.]+ of [\d.]+ relax, ([\d.]+) % of peak", text)
    assert sentence is not None and panel is not None and round(float(panel[1])) == int(sentence[1])
    assert "relaxations / peak rate), both of all cores" in text and "all-core bandwidth" in text


def test_a_kernel_has_the_same_instructions_per_relaxation_in_every_recording() -> None:
    found: dict[tuple[object, ...], set[float]] = {}
    for path in sorted(shipped_folder().glob("h200-[clnt]*.jsonl.gz")):
        for run in load_model(path)[0].runs.values():
            e = run.experiment
            for one in (one for one in run.warps if one.samples):
                each = loop_facts(one).each  # None for the instructions of a whole function with loops
                found.setdefault((e.kernel, e.dtype, e.tile, one.op), set()).update({round(each, 2)} if each is not None else ())
    assert len(found) > 50 and not {key: each for key, each in found.items() if len(each) > 1}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_numbers_of_one_name_are_equal_and_parts_add_up(path: Path) -> None:
    model, _ = load_model(path)
    runs = [run for run in model.runs.values() if run.state == "done" and run.phases and not run.simulated]
    for run in runs:
        rows, shown = phase_rows(model, run), text_rows(run, model)
        named = subject(run, model)._replace(limiters={one.key: one.limiter.what for one in rows})
        bottlenecks = [row.plain for row in run_text.phases(named, WIDTH)[1:]]
        explained = PhaseTable(None).draw(PhaseTableSubject(run, roofs_of(model, run), rows, ""), WIDTH)
        table = "\n".join(one.plain for one in explained)
        phases = [one for one in rows if one.key] or list(rows)
        for one in phases:
            took, _ = shown[one.title[: run_text.NARROW_LABEL - 1].strip()]
            assert took == units.duration(one.seconds) and took in table, "the Run and the Explain screen show one time"
            assert f" {one.limiter.what}  " in bottlenecks[phases.index(one)], "and one name of the bottleneck"
            assert str(one.limiter) in " ".join(table.split()), "in a whole sentence"
        shares = [float(share.split()[0]) for _, share in shown.values()]
        assert sum(shares) == pytest.approx(100, abs=0.1 * len(shares) + 0.5), "the parts are the whole"
        head = run_text.phases(subject(run, model), WIDTH)[0].plain
        total = sum(one.seconds for one in phases)
        assert run.seconds is not None
        more = units.duration(total) != units.duration(run.seconds) and not 0.99 * run.seconds < total < run.seconds
        assert (f"sum {units.duration(total)}" in head) == (f"sum {units.duration(total)}" in table) == more, path.name
        short = str([one.plain for one in run_text.key_numbers(subject(run, model), 80)])
        assert (f"sum {units.duration(total)}" in short) == more, "a low screen explains it too"
        assert "% of the time" not in explain(ComparedRun(model, run), None).phase or not timers_distort(run)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_stall_reasons_add_up_and_have_the_bounds_of_the_hints(path: Path) -> None:
    model, _ = load_model(path)
    for run in model.runs.values():
        for sampled in (one for one in run.warps if one.samples):
            assert sum(percentages(sampled.reasons, MAX_REASONS).values()) == 100
            gains = stall_gains(model, run, sampled.op)
            assert all(gain >= 1 for gain in gains.values()) and not gains.keys() & ELIGIBLE
        slowest = main_samples(run)
        bounds = stall_gains(model, run, slowest.op).items() if slowest is not None else ()
        known = {f"at most {units.gain(gain)} if no warp stalled on it" for _, gain in bounds}
        assert {hint.gain for hint in hints(model, run) if hint.gain.endswith("no warp stalled on it")} <= known


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_a_named_unit_is_busy_and_every_screen_names_the_same_bottleneck(path: Path) -> None:
    model, _ = load_model(path)
    for run in model.runs.values():
        for one in (row for row in phase_rows(model, run) if run.backend == "cuda" and (row.key or len(run.phases) == 1)):
            counters, what = counters_of(run, one.key), one.limiter.what
            dram = re.search(r"DRAM throughput (\d+) %", one.limiter.evidence)
            assert dram is None or (int(dram[1]) >= 60) == (what == "device memory"), one.limiter
            assert dram is None or int(dram[1]) == round(100 * (one.memory_seconds or 0.0) / one.seconds), "the table agrees"
            if what.startswith("instruction issue"):
                assert counters.get("compute_share", 0.8) >= 0.8, "the issue slots are nearly full"
            samples = samples_of(run, one.key)
            if samples is not None and one.limiter.what != LAUNCHES:
                subject = warp_subject(model, run, samples.op, 0)
                head, named = subject.stall_text, subject.reason is None or not subject.reason.contradicts
                assert named or ("PC samples" not in one.limiter.evidence and not subject.gains), (
                    "contradictory samples prove nothing"
                )
                assert not named or one.limiter.computes or head[1:-1] in one.limiter.evidence, (
                    "the panel has the sentence of the table"
                )


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_no_run_is_above_the_peak_rate_of_its_roofline_and_measured_ones_are_below_the_memory_roof(path: Path) -> None:
    model, _ = load_model(path)
    for run in (one for one in model.runs.values() if one.state == "done" and not one.simulated):
        bytes_per_second, peak = roofs_of(model, run).bytes_per_second, roofs_of(model, run).relaxations_per_second
        drawn, numbers = figure(model, run)
        measured = drawn.x.title == DRAM
        assert measured == (intensity(model, run, measured=True) is not None) or not drawn.series
        for series, ids in zip(drawn.series, numbers, strict=True):
            for number, per_byte, rate in zip(ids, series.xs, series.ys, strict=False):
                assert per_byte == intensity(model, model.runs[number], measured), "one unit for all marks"
                assert rate is not None and (peak is None or rate <= (1 + PEAK_ERROR) * peak), (path.name, run.id, number)
                assert not measured or rate <= 1.01 * (per_byte or 0.0) * (bytes_per_second or 0.0), (run.id, number)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_a_share_names_its_whole_and_no_bottleneck_has_more_than_all_of_it(path: Path) -> None:
    model, _ = load_model(path)
    for run in model.runs.values():
        for one in phase_rows(model, run):
            if not one.key and len(run.phases) > 1:
                continue  # the row of all phases has the share of the longest one
            text = one.limiter.evidence
            for number, after in SHARE.findall(text):
                before = text[: text.index(f"{number} %")].rstrip()
                assert after.strip().startswith(WHOLES) or before.endswith(NAMED_BEFORE), text
                assert one.limiter.what == UNKNOWN or float(number) <= 100 * (1 + PEAK_ERROR), text
            if timers_distort(run) and not (run.backend == "cpu" and len(run.phases) == 1):  # such a phase has the median time
                assert one.limiter.what != LAUNCHES and "peak rate" not in text, "the timers made these times"
