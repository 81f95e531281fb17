"""The choice of `auto`, and its table of tuned kernels."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import run_started
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.campaigns.tuning import Problem, Tuner, next_config
from fwtui.common.errors import Refused
from fwtui.experiment import user_kernel_registry
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import Experiment, changed, kernel_named, settle
from fwtui.live.session import Live
from fwtui.machine import device_cache, tuning_table
from fwtui.machine.device_choice import KNOWN, MEASURED, settle_here
from fwtui.machine.tuning_table import Config, TuningResult, config_of
from fwtui.stream import events, requests
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.plan import DTYPES, Shape

sys.path.insert(0, str(Path(__file__).parents[1]))
from stand_ins import answering

ASKED = Experiment(kernel="auto", n=600)
TILED = registry()["tiled-cpu"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def trial(n: int, seconds: float | None, tile: int = 64, kernel: str = "tiled-cpu", **more: Any) -> TuningResult:
    options = {"order": 1, "cores": 1, "vector": 1} if kernel == "tiled-cpu" else {}
    facts: dict[str, Any] = {"dtype": "float32", "nonnegative": True, "launch": "eager", "options": options, **more}
    return TuningResult(n=n, seconds=seconds, tile=tile, kernel=kernel, **facts)


def picked(*trials: TuningResult, **changes: Any) -> tuple[str, int, str]:
    tuning_table.save(trials, CPU)
    experiment = settle_here(Experiment(**{"kernel": "auto", "n": 600, **changes}))
    return experiment.kernel, experiment.tile, experiment.auto


def test_without_a_table_the_best_known_rung_is_taken_for_every_type() -> None:
    order = ["look-ahead", "register-tiled", "blocked-vector", "staged-load", "katz-kider", "naive"]
    for dtype in DTYPES:
        known = [name for name in order if dtype in registry()[name].dtypes]
        assert [kernel.id for kernel in in_order("cuda", dtype)] == known
        assert [kernel.id for kernel in in_order("cpu", dtype)] == ["tiled-cpu", "serial"]
    assert AUTO.id not in registry()
    with pytest.raises(ValueError, match="auto cannot run"):
        list(AUTO.plan(Shape(4), False))
    assert picked() == (in_order("cpu", "float32")[0].id, 64, KNOWN)
    assert settle_here(Experiment(kernel="serial", n=5)) == settle(Experiment(kernel="serial", n=5)), "a choice is not changed"
    in_simulator = settle_here(Experiment(kernel="auto", n=20, dtype="int16", device="simulator"))
    assert registry()[in_simulator.kernel].backend == "cuda" and in_simulator.runs_on.simulated
    with pytest.raises(Refused, match="n = 70000 is outside"):
        picked(n=70000)


def test_a_gpu_that_is_too_old_gets_what_it_can_run(pretend: Pretend) -> None:
    picks = {}
    for cc in ((7, 5), (8, 0), (9, 0)):
        pretend.gpus(events.Device(t=0, name="made up", compute_capability=cc, multiprocessors=80))
        for dtype in ("float32", "int16"):
            picks[cc, dtype] = settle_here(Experiment(kernel="auto", n=4096, dtype=dtype)).kernel
    assert [*picks.values()] == ["staged-load", "blocked-vector", "look-ahead", "blocked-vector", "look-ahead", "look-ahead"]


def test_the_fastest_of_the_nearest_size_that_can_run_here() -> None:
    sizes = [trial(512, 0.02), trial(512, 0.01, 128), trial(2048, 0.5, 32), trial(2048, 0.6)]
    assert picked(*sizes) == ("tiled-cpu", 128, MEASURED)
    assert picked(*sizes, n=1500) == ("tiled-cpu", 32, MEASURED)
    assert picked(*sizes, n=60000) == ("tiled-cpu", 32, MEASURED), "the largest stands for all above it"
    assert picked(*sizes, n=100) == ("tiled-cpu", 64, KNOWN), "no measured size is near"
    assert picked(*sizes, dtype="int32") == ("tiled-cpu", 64, KNOWN)
    gone = trial(512, 0.001, 7, "no-such-kernel")
    odd = trial(512, 0.002, 48)
    assert picked(gone, odd, *sizes) == ("tiled-cpu", 128, MEASURED), "what this version does not have is passed over"
    assert picked(trial(512, None, 16), *sizes)[1] == 128, "what was wrong has no time"


def test_negative_edges_have_measurements_of_their_own_and_a_damaged_table_is_none(cache: Path) -> None:
    nonnegative, negative = trial(512, 0.01, 16), trial(512, 0.02, 128, nonnegative=False)
    assert picked(nonnegative, negative)[1] == 16
    assert picked(nonnegative, negative, negative=0.2)[1] == 128
    assert picked(nonnegative, negative, low=-4.0)[1] == 128
    assert picked(nonnegative, negative=0.2)[1] == 16
    assert picked(trial(1024, 0.1, 32), trial(4096, 0.9, 16), n=1, file="roads.gr")[1] == 32, "as for a typical size"
    assert picked(trial(512, 0.01, 16))[1] == 16
    (file,) = cache.rglob("*.facts")
    for damage in (b"", b"[", b'[{"n": "many"}]', b"\xff\xfe", b'[{"n": 0}]', b"[" * 100_000):
        file.write_bytes(damage)
        assert tuning_table.load(CPU) == [] and settle_here(ASKED).auto == KNOWN


def cost(config: Config) -> float | None:
    """Return made-up seconds: least for tile 128 in row order; None for scalar code, which does not run."""
    if config.kernel != "tiled-cpu":
        return 9.0
    chosen = dict(config.options)
    if not chosen["vector"]:
        return None
    return 1.0 + abs(config.tile - 128) / 100 + chosen["order"] * 0.3 + (1 - chosen["cores"])


def searched(experiment: Experiment, most: int = 200) -> list[Config]:
    times: dict[Config, float | None] = {}
    while (config := next_config([TILED, registry()["serial"]], experiment, times)) is not None:
        assert config not in times and len(times) < most
        settle(config.applied(experiment))
        times[config] = cost(config)
    return list(times)


def trial_events(request: Any, verdict: str = "verified") -> Iterator[events.Event]:
    """Yield a worker's events of a run with the made-up seconds."""
    assert isinstance(request, requests.RunRequest) and request.brief
    e, run = request.experiment, request.run
    yield run_started(e, run)
    seconds = cost(config_of(e))
    if seconds is None:
        yield events.RunDone(t=0.0, run=run, outcome="failed", message="it does not compile")
        return
    yield events.Verdict(t=0.0, run=run, verdict=verdict, how="compared")
    yield events.RunDone(t=0.0, run=run, outcome="done", median=seconds * e.n / 1e6, count=9)


def tuner(answer: Callable[..., Iterable[events.Event]] = trial_events, **more: Any) -> Tuner:
    said: list[tuple[TuningResult, bool]] = []
    kernels = more.pop("kernels", [TILED, registry()["serial"]])
    made = Tuner(
        Live(telemetry_hz=0, child=answering(answer)), CPU, kernels, Experiment(), lambda t, b: said.append((t, b)), **more
    )
    made.said = said  # type: ignore[attr-defined]
    return made


def test_a_users_kernel_is_tuned_as_its_file_is_now_and_auto_never_picks_it(pretend: Pretend, tmp_path: Path) -> None:
    path, problem = tmp_path / "mine.py", Problem(256, "float32", True)
    path.write_text("one")
    user_kernel_registry.install(replace(TILED, id="mine"), path)

    def answer(request: Any) -> Iterator[events.Event]:
        """Answer a request: the user kernel is as fast as the rung, and its file is saved while tile 32 runs."""
        e = request.experiment
        if e.tile == 32 and path.read_text() == "saved meanwhile":
            path.write_text("three")
        yield from trial_events(msgspec.structs.replace(request, experiment=changed(e, kernel="tiled-cpu")))

    mine = kernel_named("mine")
    first = tuner(answer, kernels=[mine, TILED])
    assert first.tune([problem], 60.0)
    best, rung = first.best(problem, "mine"), first.best(problem)
    assert best is not None and rung is not None and best.code == user_kernel_registry.code_of("mine")
    assert rung.kernel == "tiled-cpu"
    assert best.tile == rung.tile == 128 and settle_here(Experiment(kernel="auto", n=256)).kernel == "tiled-cpu"
    path.write_text("two")
    edited = tuner(answer, kernels=[mine])
    assert edited.best(problem, "mine") is None and edited.tune([problem], 60.0) and edited.best(problem, "mine") is not None
    path.write_text("saved meanwhile")
    with pytest.raises(Refused, match="the file of mine has changed; run the command again to tune the new version"):
        tuner(answer, kernels=[mine]).tune([problem], 60.0)
    path.write_text("one")
    again = tuner(answer, kernels=[mine])
    assert again.best(problem, "mine") == best and again.tune([problem], 60.0) and again.said == []  # type: ignore[attr-defined]
    fresh = tuner(answer, kernels=[mine], fresh=True)
    assert fresh.best(problem, "mine") is None and fresh.best(problem) == rung, "only what is tuned again is forgotten"


def test_only_verified_results_that_can_be_stored_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(256, "float32", True)
    wrong = tuner(lambda request: trial_events(request, "wrong"))
    wrong.tune([problem], 60.0)
    assert wrong.best(problem) is None and {t.note for t in tuning_table.load(CPU)} == {"compared"}
    assert settle_here(ASKED).auto == KNOWN
    made = tuner()

    def refused(path: Path, devices: bool) -> None:
        raise Refused(f"{path.name} cannot be written")

    monkeypatch.setattr(device_cache, "atomic_write", refused)
    assert made.saved and made.tune([Problem(64, "float32", True)], 60.0) and not made.saved


def test_tuning_stops_when_its_time_is_over_and_skips_what_would_take_too_long() -> None:
    late = tuner()
    assert not late.tune([Problem(256, "float32", True)], 0.0) and late.results == {}
    tuning_table.save([trial(256, 5.0), trial(256, 0.001, 1, "serial", options={})], CPU)
    slow = tuner()
    assert not slow.tune([Problem(1024, "float32", True)], 60.0)
    assert {t.kernel for (problem, _), t in slow.results.items() if problem.n == 1024} == {"serial"}, "320 s a pass are too many"


def test_the_tune_command_shows_what_it_tries(pretend: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    pretend.children(answering(trial_events))
    words = ["tune", "-n", "256", "--dtype", "float32", "-k", "tiled-cpu,serial", "--telemetry-hz", "0"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n", "type", "kernel", "choices", "median", "time"]
    assert lines[1].split()[:3] == ["256", "float32", "tiled-cpu"] and lines[1].endswith("best so far")
    assert lines[-2].split() == ["n", "type", "auto", "picks", "choices", "median", "time", "rate"]
    assert lines[-1].startswith("256  float32  tiled-cpu   tile 128, cores 1, order 0, vector 1")
    assert main([*words, "--fresh", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert answers[0]["best"] is True and answers[0]["seconds"] == pytest.approx(cost(tuning_table.load(CPU)[0].config) * 256e-6)  # type: ignore[operator]
    for bad, sentence in (
        (["--seconds", "0"], "outside 1 to 86400"),
        (["-k", "naive"], "naive runs on a GPU, and none is available: there is no GPU here; omit it"),
        (["-k", "auto"], "auto cannot be tuned"),
        (["--device", "simulator"], "the simulator measures no times"),
        (["-n", "0"], "n 0 is outside 1 to 262144"),
        (["--negative", "2"], "outside 0 to 0.45"),
    ):
        assert main(["tune", *bad]) == (3 if "naive" in bad else 2)
        assert sentence in capsys.readouterr().err


def test_a_tune_that_keeps_nothing_begins_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def over(self: Tuner, problems: object, seconds: float) -> bool:
        self.saved = kept
        return False

    monkeypatch.setattr(Tuner, "tune", over)
    for kept, words in ((True, "continues the search"), (False, "pass a larger --seconds")):  # noqa: B007  (over reads it)
        main(["tune", "-n", "256", "-k", "serial", "--telemetry-hz", "0"])
        assert capsys.readouterr().err.endswith(f"{words}\n")


def test_a_run_marks_the_choice_of_auto(
    tmp_path: Path, own_cache: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", own_cache)
    words = ("-k", "auto", "-n", "64", "--repeats", "2", "--telemetry-hz", "0", "--record", str(tmp_path / "auto.fwt.jsonl"))
    assert main(["run", "--json", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kernel"], told["auto"], told["verified"]) == (in_order("cpu", "float32")[0].id, KNOWN, True)
    assert main(["replay", "--table", str(tmp_path / "auto.fwt.jsonl")]) == 0
    assert f"{TILED.id} (auto)" in capsys.readouterr().out
