"""Metrics of the papers, the option for every kernel, and the columns that all tables share."""

import argparse
import json
from typing import Any

import pytest
from builders import SessionBuilder, documented_fields
from msgspec.structs import replace

from fwtui.__main__ import main
from fwtui.analysis import columns
from fwtui.analysis.columns import COMPARED, PRINTED, PRINTED_HEAD, SWEPT, Column, TableRow, head, line, printed
from fwtui.analysis.data_sheet import fp32_flops
from fwtui.analysis.report import result
from fwtui.commands import run as run_command
from fwtui.commands.support.experiment_options import experiments_of_every_kernel
from fwtui.common.errors import NoGpu, Refused
from fwtui.common.version import RESULT_VERSION
from fwtui.experiment.experiment import Experiment, Settled, settle
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry

H200 = events.Device(t=0, name="H200", compute_capability=(9, 0), multiprocessors=132, max_clock_mhz=1980)
C1060_FLOPS, KATZ_RATE = 933e9, 14.9e9  # the document's: 62.7 FLOPs' worth of time per task


def model(*runs: dict[str, Any], device: events.Device | None = H200) -> Model:
    """Return a session of finished runs, each of one second unless it says otherwise."""
    session = SessionBuilder(*([] if device is None else [device]))
    stages = (("load", 0.5, 1000), ("unload", 0.0, 1000), ("read", 2.0, 500))
    copies = [events.Stage(t=0, run=1, name=name, seconds=seconds, bytes=size) for name, seconds, size in stages]
    part = events.Part(phase="a", seconds=4.0, launches=2, relaxations=800, device_bytes=1200)
    for told in runs:
        asked = {name: told[name] for name in ("kernel", "n", "dtype") if name in told}
        e = Experiment(**{"kernel": "naive", "n": 1000, "dtype": "float32", **asked})
        about = {name: told[name] for name in ("backend", "verdict") if name in told}
        session.run(e, *copies, parts=[part], seconds=told.get("seconds", 1.0), relaxations=e.n**3, **about)
    return session.model


def test_peaks_of_known_boards_over_rates_are_flops_per_task() -> None:
    assert fp32_flops(H200) == pytest.approx(66.9e12, rel=1e-3)
    a100 = events.Device(t=0, compute_capability=(8, 0), multiprocessors=108, max_clock_mhz=1410)
    rtx4090 = events.Device(t=0, compute_capability=(8, 9), multiprocessors=128, max_clock_mhz=2520)
    assert fp32_flops(a100) == pytest.approx(19.5e12, rel=1e-2), "its data sheet"
    assert fp32_flops(rtx4090) == pytest.approx(82.6e12, rel=1e-2), "its data sheet"
    assert fp32_flops(None) is None and fp32_flops(events.Device(t=0)) is None
    assert fp32_flops(events.Device(t=0, compute_capability=(99, 0), multiprocessors=1, max_clock_mhz=1)) is None
    assert fp32_flops(events.Device(t=0, compute_capability=(9, 0), multiprocessors=132)) is None
    made = model({"seconds": 1e9 / KATZ_RATE})
    row = result(made, made.runs[1])
    assert list(row) == documented_fields("`fwtui run --json`") and row["version"] == RESULT_VERSION
    assert row["flops_per_task"] == pytest.approx(66.9e12 / KATZ_RATE, rel=1e-3)
    clock = C1060_FLOPS / (2 * 128 * 132 * 1e6)
    old = model({"seconds": 1e9 / KATZ_RATE}, device=replace(H200, max_clock_mhz=clock))
    assert result(old, old.runs[1])["flops_per_task"] == pytest.approx(62.6, abs=0.1)
    on_cpu = model({"backend": "cpu"})
    assert result(on_cpu, on_cpu.runs[1])["flops_per_task"] is None


class TestReport:
    def test_speedups_are_against_a_run_of_the_same_size_and_type(self) -> None:
        made = model(
            {"kernel": "serial", "seconds": 8.0},
            {"kernel": "serial", "seconds": 6.0, "dtype": "int32"},
            {"kernel": "serial", "seconds": 99.0, "n": 500},
            {"seconds": 2.0},
            {"seconds": 2.0, "dtype": "int32"},
            {"seconds": 2.0, "dtype": "int16"},
            {"seconds": 2.0, "n": 700},
            {"seconds": 2.0, "verdict": "wrong"},
        )
        got = [(data["baseline"], data["speedup"]) for data in (result(made, run, "serial") for run in made.runs.values())]
        assert got[3:] == [(1, 4.0), (2, 3.0), (2, 3.0), (None, None), (1, None)]
        assert got[0] == (1, 1.0)
        at = PRINTED_HEAD.index("speedup")
        assert [printed(made, run, "serial")[at] for run in made.runs.values()][3:] == ["4.00x", "3.00x", "3.00x", "-", "-"]
        assert printed(made, made.runs[4])[at] == "4.00x", "without a name the first run of the same graph"
        assert result(made, made.runs[5])["baseline"] == 1 and result(made, made.runs[7])["baseline"] == 7
        assert printed(made, made.runs[4])[PRINTED_HEAD.index("checksum")] == "01234567"
        made = model({"kernel": "serial", "verdict": "wrong"}, {})
        assert result(made, made.runs[2], "serial")["baseline"] is None, "a wrong one is none"

    def test_copies_and_phases_with_their_rates(self) -> None:
        made = model({}, {"backend": "cpu"}, {"backend": "simulator"})
        on_gpu, on_cpu, simulated = (result(made, run) for run in made.runs.values())
        read = {"seconds": 2.0, "bytes": 500, "bytes_per_second": 250.0}
        there, back = ({"seconds": s, "bytes": 1000, "bytes_per_second": rate} for s, rate in ((0.5, 2000.0), (0.0, None)))
        assert on_gpu["copies"] == {"h2d": there, "d2h": back, "file": read}
        assert on_cpu["copies"] == {"file": read} and simulated["copies"] == {} and simulated["phase_details"] == []
        (phase,) = on_gpu["phase_details"]
        assert (phase["seconds"], phase["share"], phase["launches"]) == (4.0, 1.0, 2)
        assert (phase["relaxations_per_second"], phase["model_bytes_per_second"]) == (200.0, 300.0)
        json.dumps([on_gpu, on_cpu, simulated])


class TestEveryKernel:
    @staticmethod
    def asked(gpu: bool = True, refuse: Any = lambda e: None, **flags: str) -> tuple[list[Settled], list[tuple[str, str]]]:
        parser = argparse.ArgumentParser()
        run_command.add_arguments(parser)
        words = [part for name, value in flags.items() for part in (f"--{name}", value)]

        def settled(e: Experiment) -> Settled:
            refuse(e)
            return settle(e)

        return experiments_of_every_kernel(parser.parse_args(words), gpu, settled)

    def test_all_kernels_get_one_size_and_a_type_that_they_have(self) -> None:
        fits, left_out = self.asked(n="100")
        assert [e.kernel for e in fits] == list(registry()) and left_out == []
        for e in fits:
            dtypes = registry()[e.kernel].dtypes
            assert e.n == 100 and e.dtype == ("float32" if "float32" in dtypes else dtypes[0])

    def test_each_kernel_gets_the_first_requested_type_that_it_has(self) -> None:
        fits, left_out = self.asked(n="64", dtype="int32,int16")
        for e in fits:
            assert e.dtype == ("int32" if "int32" in registry()[e.kernel].dtypes else "int16")
        assert {e.kernel for e in fits} | {k for k, _ in left_out} == set(registry())
        fits, left_out = self.asked(n="64", dtype="int32")
        without = {k.id for k in registry().values() if "int32" not in k.dtypes}
        assert {k for k, _ in left_out} == without and all("int32 is not supported" in why for _, why in left_out)
        with pytest.raises(Refused, match="cannot be combined"):
            self.asked(kernel="serial")

    def test_unsuitable_kernels_are_named_and_options_go_to_kernels_that_have_them(self) -> None:
        def only_cpu(e: Experiment) -> None:
            if registry()[e.kernel].backend == "cuda":
                raise NoGpu("no GPU here")

        fits, left_out = self.asked(gpu=False, refuse=only_cpu)
        assert {registry()[e.kernel].backend for e in fits} == {"cpu"} and {e.n for e in fits} == {512}
        assert dict(left_out)["naive"] == "no GPU here"
        fits, _ = self.asked(n="64", threads="64")
        assert {e.kernel: e.options.get("threads") for e in fits}["naive"] == 64
        assert all("threads" not in e.options for e in fits if not any(o.name == "threads" for o in registry()[e.kernel].options))


def test_a_baseline_has_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-k", "serial", "-n", "30", "--baseline", "scipy", "--telemetry-hz", "0"]) == 2
    assert "'scipy' is not among the kernels that run (serial)" in capsys.readouterr().err


def test_a_new_column_is_one_line_and_its_tables_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(columns.COLUMNS) == len(columns.ALL), "each has a key of its own"
    made = model({"kernel": "serial", "n": 1000})
    row, tables = TableRow(made, made.runs[1]), (PRINTED, COMPARED, SWEPT)
    before = [(head(table), line(table, row)) for table in tables]
    added = Column("added", "vertices", lambda r: r.run.n, dict.fromkeys(tables[1:], 0), unit=lambda n: f"{n} in all")
    monkeypatch.setitem(columns.COLUMNS, "added", added)
    first, *others = [(head(table), line(table, row)) for table in tables]
    assert first == before[0], "it was not asked for there"
    assert others == [((*titles, "vertices"), (*texts, "1000 in all")) for titles, texts in before[1:]]
