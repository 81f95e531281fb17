"""The choice of the kernel `auto`."""

import json
from pathlib import Path

import pytest
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, settle
from fwtui.machine.device_choice import KNOWN, settle_here
from fwtui.stream import events
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.plan import DTYPES, Shape


def test_the_best_known_rung_is_taken_for_every_type() -> None:
    order = ["look-ahead", "register-tiled", "blocked-vector", "staged-load", "katz-kider", "naive"]
    for dtype in DTYPES:
        known = [name for name in order if dtype in registry()[name].dtypes]
        assert [kernel.id for kernel in in_order("cuda", dtype)] == known
        assert [kernel.id for kernel in in_order("cpu", dtype)] == ["tiled-cpu", "serial"]
    assert AUTO.id not in registry()
    with pytest.raises(ValueError, match="auto cannot run"):
        list(AUTO.plan(Shape(4), False))
    settled = settle_here(Experiment(kernel="auto", n=600))
    assert (settled.kernel, settled.tile, settled.auto) == (in_order("cpu", "float32")[0].id, 64, KNOWN)
    assert settle_here(Experiment(kernel="serial", n=5)) == settle(Experiment(kernel="serial", n=5)), "a choice is not changed"
    in_simulator = settle_here(Experiment(kernel="auto", n=20, dtype="int16", device="simulator"))
    assert registry()[in_simulator.kernel].backend == "cuda" and in_simulator.runs_on.simulated
    with pytest.raises(Refused, match="n = 70000 is outside"):
        settle_here(Experiment(kernel="auto", n=70000))


def test_a_gpu_that_is_too_old_gets_what_it_can_run(pretend: Pretend) -> None:
    picks = {}
    for cc in ((7, 5), (8, 0), (9, 0)):
        pretend.gpus(events.Device(t=0, name="made up", compute_capability=cc, multiprocessors=80))
        for dtype in ("float32", "int16"):
            picks[cc, dtype] = settle_here(Experiment(kernel="auto", n=4096, dtype=dtype)).kernel
    assert [*picks.values()] == ["staged-load", "blocked-vector", "look-ahead", "blocked-vector", "look-ahead", "look-ahead"]


def test_a_run_marks_the_choice_of_auto(
    tmp_path: Path, own_cache: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", own_cache)
    words = ("-k", "auto", "-n", "64", "--repeats", "2", "--telemetry-hz", "0", "--record", str(tmp_path / "auto.fwt.jsonl"))
    assert main(["run", "--json", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kernel"], told["auto"], told["verified"]) == (in_order("cpu", "float32")[0].id, KNOWN, True)
    assert main(["replay", "--table", str(tmp_path / "auto.fwt.jsonl")]) == 0
    assert "tiled-cpu (auto)" in capsys.readouterr().out
