"""Speedup, efficiency, waiting and imbalance of a run on several devices, and the sentences about them."""

import pytest
import scenes
from builders import model_of
from msgspec.structs import replace

from fwtui.analysis import rank_timing
from fwtui.analysis.causes import hints
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.data_sheet import fp32_flops
from fwtui.analysis.explanation import explain
from fwtui.analysis.limits import limit_of, share_of_peak
from fwtui.analysis.phase_table import phase_rows, roofs_of
from fwtui.analysis.report import result
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.widgets import run_text
from fwtui.tui.widgets.run_text import RunSubject
from fwtui_kernels.probes.probe_forms import right_for


def subject(model: Model) -> RunSubject:
    run = model.runs[2]
    return RunSubject(run, None, model.gpu, None, True, gained=rank_timing.gain(model, run))


def parted(told: list[events.Event], **seconds: float) -> list[events.Event]:
    """Return the session with other seconds in these phases of every rank."""
    return [
        replace(event, parts=tuple(replace(part, seconds=seconds.get(part.phase, part.seconds)) for part in event.parts))
        if isinstance(event, events.Phases | events.RankPhases) and event.run == 2
        else event
        for event in told
    ]


class TestGain:
    def test_speedup_is_over_the_fastest_correct_run_on_one_device(self) -> None:
        session = scenes.ranked_session(2)
        slower = scenes.run(3, 9.0, scenes.experiment("naive"), seconds=0.2)
        wrong = scenes.run(4, 15.0, scenes.experiment("look-ahead"), title="T", seconds=0.001, verdict=scenes.verdict("wrong"))
        typed = scenes.run(5, 20.0, scenes.experiment("look-ahead", dtype="int16"), title="T", seconds=0.001)
        other = scenes.run(6, 25.0, scenes.experiment("look-ahead", seed=8), title="T", seconds=0.001)
        model = model_of([*session, *slower, *wrong, *typed, *other])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and found.reference.id == 1 and found.times == pytest.approx(1.94)
        assert found.text == "1.94x over one GPU (97 % efficiency)" and found.efficiency == pytest.approx(0.97)
        told = result(model, model.runs[2])
        assert (told["one_device"], told["efficiency"]) == (1, found.efficiency) and len(told["ranks"]) == 2
        assert told["ranks"][1]["phases"]["wait"] > 0 and told["imbalance"] == pytest.approx(1.02, abs=0.01)

    def test_speedup_is_over_the_fastest_run_on_the_same_model_of_gpu(self) -> None:
        def on(gpu: int, number: int, seconds: float) -> list[events.Event]:
            told = scenes.run(number, 10.0 * number, scenes.experiment("naive"), title="T", seconds=seconds)
            return [replace(event, gpu=gpu) if isinstance(event, events.RunStarted) else event for event in told]

        session = [
            replace(event, ranks=tuple(replace(rank, name="made-up GPU") for rank in event.ranks))
            if isinstance(event, events.RunStarted)
            else event
            for event in scenes.ranked_session(2)
        ]
        named = [events.Device(t=0.0, gpu=gpu, name=name) for gpu, name in ((0, "made-up GPU"), (1, "another"), (2, ""))]
        others = [*on(1, 3, 0.001), *on(0, 4, 0.02), *on(2, 5, 0.02)]
        model = model_of([*session, *named, *others])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and found.reference.id == 4
        unnamed = model_of([*scenes.ranked_session(2), *named, *on(1, 3, 0.02), *on(0, 4, 0.02)])
        assert (found := rank_timing.gain(unnamed, unnamed.runs[2])) is not None and found.reference.id == 3

    def test_without_a_run_on_one_device_there_is_no_speedup(self) -> None:
        model = model_of(scenes.ranked_session(2, alone=False))
        assert rank_timing.gain(model, model.runs[2]) is None

    def test_processes_of_one_machine_share_its_cores_and_have_no_efficiency(self) -> None:
        alone = scenes.run(1, 1.0, scenes.experiment("tiled-cpu", 512), seconds=0.02)
        model = model_of([scenes.header(), *alone, *scenes.ranked_run(2, 5.0, 2, seconds=0.04, backend="cpu", n=512)])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and (found.times, found.efficiency, found.text) == (0.5, None, "0.50x over one process")
        assert model.runs[2].device_count == 1

    def test_limits_are_those_of_all_devices_together(self) -> None:
        form = events.FormLimit(form=right_for("cuda", "float32", True)[0].key, relaxations_per_second=1e13)
        model = model_of(scenes.ranked_session(4))
        model.apply(events.Limits(t=0.1, backend="cuda", forms=(form,), complete=True))
        one, four = (limit_of(model, model.runs[number]) for number in (1, 2))
        assert one is not None and four is not None and four.relaxations_per_second == 4 * one.relaxations_per_second
        assert roofs_of(model, model.runs[2]).bytes_per_second == 4 * 4.81e12
        run, gpu = model.runs[2], model.gpu
        assert run.bandwidth is not None and share_of_peak(run, gpu) == pytest.approx(run.bandwidth / 4.81e12 / 4)
        row = result(model, run)
        assert row["model_bytes_per_second"] / row["peak_bytes_per_second"] == share_of_peak(run, gpu)
        assert row["flops_per_task"] == pytest.approx(4 * (fp32_flops(gpu) or 0.0) / (run.rate or 1.0))


class TestWhy:
    def test_waiting_and_broadcast_bandwidth_are_reported(self) -> None:
        model = model_of(scenes.ranked_session(2))
        run = model.runs[2]
        said = explain(ComparedRun(model, run), ComparedRun(model, model.runs[1])).sentence()
        assert said.startswith("1.94x speedup over Look-ahead: two GPUs instead of one.")
        assert "Waiting" not in said, "2 % is too short for a sentence"
        lines = {line.key: str(line.limiter) for line in phase_rows(model, run)}
        assert [line.roofline_seconds for line in phase_rows(model, run) if line.key in ("broadcast", "wait")] == [None, None]
        assert lines["broadcast"] == "interconnect: 74.6 GB/s between GPUs"
        assert str(rank_timing.link_bandwidth(run)) == "74.6 GB/s between GPUs, 2.06 MiB in 29.0 us each"
        assert lines["wait"] == "the owner rank produces the next panel too late"

    def test_a_rate_beyond_pcie_is_attributed_to_nvlink(self) -> None:
        model = model_of(parted(scenes.ranked_session(2), broadcast=0.0002))
        assert "346 GB/s over NVLink" in str(rank_timing.link_bandwidth(model.runs[2]))

    def test_a_graph_that_is_too_small_for_its_ranks(self) -> None:
        model = model_of(parted(scenes.ranked_session(2), broadcast=0.02))
        run = model.runs[2]
        said = explain(ComparedRun(model, run), None).sentence()
        assert said.startswith("Bottleneck: interconnect in the broadcast phase (") and ": 3.46 GB/s between GPUs" in said
        assert "The graph is too small for that many ranks: waiting for panels and broadcasting them take 5" in said
        (found,) = [hint for hint in hints(model, run) if hint.key == "exchange"]
        assert found.sentence.endswith("; a larger graph or fewer ranks give each rank more work")
        assert found.gain == "at most 1.06x if it overlapped with work"

    def test_on_a_busy_machine_the_graph_size_is_not_the_reason(self) -> None:
        told = parted(scenes.ranked_session(2), broadcast=0.02)
        run = model_of(told).runs[2]
        assert run.clean_window is not None
        at = sum(run.clean_window) / 2
        busy = [events.Telemetry(t=at + place / 1000, other_cpu_utilisation=0.9, throttle=4) for place in range(5)]
        model = model_of(scenes.merged(told, busy))  # type: ignore[arg-type]
        said = rank_timing.describe_waiting(model, model.runs[2])
        assert said.startswith("waiting for panels and broadcasting them take ")

    def test_uneven_rows_are_named_as_the_reason(self) -> None:
        model = model_of(scenes.ranked_session(8))
        said = rank_timing.describe_waiting(model, model.runs[2])
        assert said.endswith("rank 0 (GPU 0) is busy longest, 1.18x the mean work"), "each has as many rows"
        uneven = replace(model.runs[2], padded=9 * 128)
        assert "rank 0 (GPU 0) has 2 of 9 rows of tiles" in rank_timing.describe_waiting(model, uneven)
        model.runs[2] = uneven
        (found,) = [hint for hint in hints(model, uneven) if hint.key == "uneven rows"]
        text = "9 rows of tiles for 8 ranks: some ranks have more rows than others; a tile of 64 gives more rows"
        assert str(found) == f"{text}; at most 1.18x if all ranks had the same work"

    def test_nothing_is_reported_without_times_of_ranks(self) -> None:
        told = [event for event in scenes.ranked_session(2) if not isinstance(event, events.RankPhases)]
        model = model_of(told)
        assert rank_timing.rank_times(model.runs[2]) == () and not rank_timing.describe_waiting(model, model.runs[2])
        assert not rank_timing.overlap_text(model.runs[2])
        assert run_text.ranks(subject(model), 80) == []
