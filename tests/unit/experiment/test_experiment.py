"""Experiments and devices: each field reads its own text, and each mistake gets one useful sentence."""

import argparse
import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from builders import run_started
from hypothesis import given, settings
from hypothesis import strategies as st

from fwtui.campaigns.sweep.axis import read_axis
from fwtui.commands.support import experiment_options
from fwtui.common.child_process import request_line
from fwtui.common.errors import Refused
from fwtui.experiment import user_kernel_registry
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.experiment.experiment import (
    MAX_SEED,
    Experiment,
    as_it_ran,
    changed,
    defaults,
    first_experiment,
    identity,
    settle,
)  # fmt: skip
from fwtui.experiment.fields import FIELDS, Field
from fwtui.stream import events, requests
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Shape

FIELD = {field.name: field for field in FIELDS}
KERNELS = list(registry().values())
CUDA = [k for k in KERNELS if k.backend == "cuda"]


def test_fields_cover_every_attribute() -> None:
    read = {"weights": {"low", "high"}}
    covered = set().union(*(read.get(field.name, {field.name}) for field in FIELDS))
    assert covered == set(Experiment.__struct_fields__) - {"options", "auto", "code"}  # which are found, not set
    assert len(FIELD) == len(FIELDS)
    shorts = [field.short for field in FIELDS if field.short]
    assert len(set(shorts)) == len(shorts)
    assert all(field.title and field.help and field.metavar for field in FIELDS)


@pytest.mark.parametrize(
    "value", [{"density": 1 / 3}, {"density": 1e-7}, {"budget": 12.345678}, {"low": 1 + 1 / 256, "high": 65535.99609375}], ids=str
)
def test_no_digit_of_a_number_is_lost_in_its_text(value: dict[str, float]) -> None:
    field = FIELD["weights" if "low" in value else next(iter(value))]
    assert field.read(field.show(Experiment(**value))) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
@pytest.mark.parametrize("simulated", [False, True])
def test_every_choice_of_a_field_is_accepted(kernel: Kernel, simulated: bool) -> None:
    if simulated and kernel.backend != "cuda":
        return
    base = Experiment(kernel=kernel.id, n=16, dtype=kernel.dtypes[0])
    for field in FIELDS:
        for choice in field.choices(kernel, simulated) if field.choices is not None else ():
            if field.name == "kernel":
                assert field.read(choice) == {"kernel": choice}
                continue
            if field.name == "real" and choice == "yes" and "float32" not in kernel.dtypes:
                continue
            settled = settle(changed(base, **field.read(choice)), simulated)
            assert field.show(settled) == choice
    for option in kernel.options:
        for value in option.values:
            assert settle(changed(base, options={option.name: value}), simulated).options[option.name] == value


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
def test_settling_fills_in_the_kernels_own_defaults(kernel: Kernel) -> None:
    settled = settle(Experiment(kernel=kernel.id, n=100, dtype=kernel.dtypes[0]))
    assert settled.tile == kernel.tile_for(100)
    assert settled.options == {o.name: o.default for o in kernel.options}
    assert settled.launch == kernel.launch_modes[-1]
    assert settle(settled) == settled
    assert settled.shape(100) == Shape(
        100, kernel.tile_for(100) or 1, settled.dtype, options=tuple(sorted(settled.options.items()))
    )
    assert settled.shape(100, nonnegative=False).nonnegative is False
    assert requests.decode(request_line(requests.RunRequest(3, settled))) == requests.RunRequest(3, settled)


def test_a_settled_experiment_has_a_device_and_the_default_one_can_run() -> None:
    for gpu in (False, True):
        for first in (first_experiment(gpu), defaults(gpu)):
            assert type(first) is Experiment and settle(first).runs_on.backend == registry()[first.kernel].backend
            assert registry()[first.kernel].backend == ("cuda" if gpu else "cpu")
    settled = settle(Experiment(kernel="naive", n=9, device="3"))
    assert settled.runs_on == DeviceId("cuda", 3) and settled.gpus == [settled.runs_on]
    assert settle(Experiment(kernel="distributed", devices="2,1")).gpus == [DeviceId("cuda", 2), DeviceId("cuda", 1)]
    assert settle(Experiment(kernel="serial")).runs_on == CPU and settle(Experiment(kernel="serial")).gpus == []
    assert settle(Experiment(kernel="naive", n=9), simulated=True).runs_on == DeviceId("simulator")
    plain = changed(settled)
    assert type(plain) is Experiment and "runs_on" not in msgspec.to_builtins(plain) and settle(plain) == settled
    assert identity(settled) == identity(plain) and settled.graph == plain.graph
    assert settled.measured(repeats=3) == settle(changed(plain, repeats=3))
    with pytest.raises(Refused, match="kernel auto is resolved on the machine of the run"):
        settle(Experiment(kernel="auto"))


@pytest.mark.parametrize(
    ("changes", "left"), [({"tile": 0}, "tile"), ({"options": {}, "launch": ""}, "options or launch"), ({"n": 2}, "")]
)
def test_executing_a_settled_experiment_chooses_nothing(changes: dict[str, Any], left: str) -> None:
    open_one = as_it_ran(changed(settle(Experiment(kernel="tiled-cpu", n=300)), **changes), CPU)
    if not left:
        return open_one.check()
    with pytest.raises(Refused, match=f"^{left} was not resolved before the run started"):
        open_one.check()


def test_a_kernel_may_refuse_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    picky = replace(registry()["serial"], refuses=lambda shape: "n = 7 is odd; choose an even one" if shape.n % 2 else None)
    monkeypatch.setattr(user_kernel_registry, "registry", lambda: {"serial": picky})
    with pytest.raises(Refused, match="n = 7 is odd"):
        settle(Experiment(kernel="serial", n=7))
    settle(Experiment(kernel="serial", n=8))
    settle(Experiment(kernel="serial", n=7, file="known later.gr"))


# what is asked, and what the sentence must name: the value, the limit, the way out
READ: list[tuple[str, str, tuple[str, ...]]] = [
    ("kernel", "floyd", ("'floyd'", "serial", "katz-kider", "choose")),
    ("n", "0", ("0", "1 to 262144", "pass")),
    ("n", "262145", ("262145", "1 to 262144", "pass")),
    ("n", "ten", ("'ten'", "integer", "1 to 262144", "pass")),
    ("n", "9" * 5000, ("integer", "pass")),
    ("kind", "gird", ("gird", "grid")),
    ("density", "1.5", ("1.5", "0 to 1", "30%")),
    ("density", "nan", ("nan", "0 to 1", "30%")),
    ("density", "dense", ("'dense'", "0 to 1", "30%")),
    ("density", "%", ("'%'", "0 to 1", "30%")),
    ("weights", "5", ("'5'", "1..16", "pass")),
    ("weights", "9..2", ("9..2", "write", "2..9")),
    ("weights", "1..70000", ("1..70000", "65536", "pass")),
    ("weights", "nan..1", ("nan..1", "65536", "pass")),
    ("real", "maybe", ("'maybe'", "yes nor no", "pass")),
    ("connected", "", ("''", "yes nor no", "pass")),
    ("negative", "0.5", ("0.5", "0.45", "pass")),
    ("seed", "-1", ("-1", str(MAX_SEED), "pass")),
    ("tile", "0", ("0", "1 to 1024", "pass")),
    ("tile", "big", ("'big'", "1 to 1024", "pass")),
    ("repeats", "0", ("0", "1 to 1000", "pass")),
    ("budget", "0.01", ("0.01", "0.1 to 3600", "pass")),
    ("budget", "nan", ("nan", "0.1 to 3600", "pass")),
    ("budget", "soon", ("'soon'", "number", "pass")),
    ("device", "gpu", ("'gpu'", "auto", "simulator", "doctor")),
    ("device", "9" * 5000, ("auto", "simulator", "doctor")),
]  # fmt: skip


def assert_one_sentence(refusal: Refused, names: tuple[str, ...]) -> None:
    sentence = str(refusal)
    assert "\n" not in sentence and len(sentence) < 6000
    for name in names:
        assert name in sentence, sentence


@pytest.mark.parametrize(("name", "text", "names"), READ, ids=[f"{n}={t[:12]}" for n, t, _ in READ])
def test_unreadable_fields_are_refused_in_a_sentence(name: str, text: str, names: tuple[str, ...]) -> None:
    with pytest.raises(Refused) as caught:
        FIELD[name].read(text)
    assert_one_sentence(caught.value, names)


SETTLED: list[tuple[dict[str, Any], bool, tuple[str, ...]]] = [
    ({"kernel": "nothing"}, False, ("'nothing'", "tiled-cpu", "choose")),
    ({"dtype": "int64"}, False, ("int64", "tiled-cpu", "float32, int32, int16 or float64")),
    ({"tile": 48}, False, ("48", "tiled-cpu", "16, 32, 64 or 128")),
    ({"launch": "graph"}, False, ("graph", "tiled-cpu", "choose eager")),
    ({"memory": "pinned"}, False, ("pinned", "tiled-cpu", "choose device")),
    ({"verify": "maybe"}, False, ("maybe", "auto, full, sample or off")),
    ({"options": {"threads": 64}}, False, ("tiled-cpu", "'threads'", "order")),
    ({"kernel": "katz-kider", "options": {"threads": 100}}, False, ("100", "64, 256 or 1024")),
    ({"kernel": "katz-kider", "options": {"thread": 64}}, False, ("'thread'", "it has threads")),
    ({"device": "gpu0"}, False, ("'gpu0'", "simulator", "doctor")),
    ({"device": "٣"}, False, ("auto", "simulator", "doctor")),
    ({"n": 10**9}, False, ("n = 1000000000", "65536", "pass")),
    ({"kernel": "naive", "n": 25}, True, ("n = 25", "24", "simulator", "smaller n")),
    ({"kernel": "katz-kider", "tile": 32, "n": 9}, True, ("32", "simulator", "4 or 8")),
    ({"kernel": "naive", "launch": "graph", "n": 9}, True, ("graph", "simulator", "eager")),
    ({"kernel": "naive", "memory": "pinned", "n": 9}, True, ("pinned", "simulator", "device")),
    ({"density": math.nan}, False, ("density", "0 to 1", "pass")),
    ({"negative": 0.6}, False, ("0.6", "0.45", "pass")),
    ({"seed": -1}, False, ("seed -1", "0 to", "pass")),
    ({"repeats": -1}, False, ("repeats -1", "0 to 1000", "pass")),
    ({"budget": 0.0}, False, ("budget 0", "0.1 to 3600", "pass")),
    ({"low": 5, "high": 2}, False, ("weight", "pass")),
    ({"low": math.inf, "high": math.inf}, False, ("weight", "inf", "65536")),
    ({"high": 2.5}, False, ("2.5", "integer", "real weights")),
    ({"high": 2.001, "real": True}, False, ("2.001", "1/256", "round it")),
    ({"real": True, "dtype": "int32"}, False, ("int32", "float32")),
    ({"dtype": "int16", "low": -1}, False, ("int16", "negative", "int32 or float32")),
    ({"dtype": "int16", "negative": 0.1}, False, ("int16", "negative", "int32 or float32")),
    ({"negative": 0.1, "low": -1}, False, ("-1", "non-negative", "start the range")),
    ({"file": "/home of/somebody/graph"}, False, ("'graph'", ".gr", "convert")),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "simulated", "names"), SETTLED, ids=[str(c) for c, _, _ in SETTLED])
def test_impossible_runs_are_refused(changes: dict[str, Any], simulated: bool, names: tuple[str, ...]) -> None:
    with pytest.raises(Refused) as caught:
        settle(Experiment(**changes), simulated)
    assert_one_sentence(caught.value, names)
    assert "somebody" not in str(caught.value)


@settings(max_examples=300)
@given(st.sampled_from(FIELDS), st.text(max_size=12) | st.from_regex(r"\A\s?-?[0-9_.%einfa]{1,9}\s?\Z"))
def test_no_text_breaks_a_field(field: Field, text: str) -> None:
    try:
        changes = field.read(text)
    except Refused as refusal:
        assert str(refusal)
        return
    asked = changed(Experiment(), **changes)
    try:
        settled = settle(asked)
    except Refused as refusal:
        assert str(refusal)
        return
    assert msgspec.json.decode(msgspec.json.encode(settled), type=Experiment) == changed(settled)


def test_the_graphs_key_and_the_identity_leave_out_how_it_was_measured() -> None:
    base = Experiment()
    same: list[dict[str, Any]] = [{"kernel": "serial"}, {"dtype": "int32"}, {"tile": 32}, {"repeats": 3}, {"verify": "off"}]
    assert {changed(base, **c).graph for c in same} == {base.graph}
    other: list[dict[str, Any]] = [
        *({"n": 9}, {"kind": "grid"}, {"density": 0.4}, {"low": 2}, {"high": 9}, {"real": True}, {"negative": 0.1}),
        *({"connected": True}, {"exact": True}, {"seed": 8}, {"file": "a.gr"}),
    ]
    assert len({changed(base, **c).graph for c in other} | {base.graph}) == len(other) + 1
    plain = settle(Experiment(kernel="tiled-cpu", n=256))
    assert identity(plain) == identity(changed(plain, repeats=3, budget=1.0, verify="off", device="0"))
    assert identity(plain) != identity(changed(plain, seed=8)) and hash(identity(plain))
    named = changed(plain, file="/tmp/roads.gr")
    assert identity(named) == identity(changed(plain, file="roads.gr"))
    assert named.graph == changed(named, seed=8, n=300).graph
    seedless = identity(plain, ignoring=("seed",))
    assert seedless == identity(changed(plain, seed=8), ("seed",)) != identity(changed(plain, repeats=3), ("seed",))


def asked(*words: str, gpu: bool = False) -> list[Experiment]:
    parser = argparse.ArgumentParser()
    experiment_options.add_experiment_options(parser)
    return experiment_options.parse_experiments(parser.parse_args(words), gpu)


def test_an_option_is_given_as_a_number_or_as_the_form_calls_it() -> None:
    for words in (("--vector", "no", "--order", "By tile", "--cores", "1"), ("--vector", "0", "--order", "1", "--cores", "all")):
        assert asked("--kernel", "tiled-cpu", *words)[0].options == {"vector": 0, "order": 1, "cores": 1}
    assert read_axis("vector", "yes,no", ()).values == ("0", "1")
    for option, known in (("--threads", "64, 256, 1024"), ("--pitch", "no, yes")):
        with pytest.raises(Refused, match=f"{option[2:]} 'many' is not supported by naive; choose one of {known}"):
            asked("--kernel", "naive", option, "many")


SECOND = DeviceId("cuda", 1)
NAMED = {"auto": DeviceId(), "0": FIRST_GPU, "1": SECOND, "9999": DeviceId("cuda", 9999), "simulator": DeviceId("simulator")}


@pytest.mark.parametrize(("text", "device"), NAMED.items())
def test_a_device_is_parsed_from_its_own_text(text: str, device: DeviceId) -> None:
    assert DeviceId.parse(text) == device and str(device) == text
    assert Experiment(device=text).device_id == device


def test_invalid_devices_are_refused_and_events_have_backend_and_number() -> None:
    for text in ("", "gpu", "-1", "1.0", "٣", "²", "12345", " 1", "cpu"):
        with pytest.raises(Refused, match="is neither auto, simulator nor a GPU's number"):
            DeviceId.parse(text)
        assert Experiment(device=text).device_id == DeviceId(), "of a made-up session"
    assert DeviceId.parse("cpu", "cpu") == CPU and DeviceId.parse("1", "cpu") == SECOND
    with pytest.raises(Refused, match="'simulator' is neither auto, cpu nor"):
        DeviceId.parse("simulator", "cpu")
    assert DeviceId("cpu", 3) == CPU and SECOND.on("cpu") == CPU and SECOND.on("cuda") == SECOND
    assert DeviceId().on("cuda") == DeviceId("simulator").on("cuda") == FIRST_GPU
    assert len({FIRST_GPU, SECOND, CPU, DeviceId("cpu", 1)}) == 3
    assert sorted([SECOND, CPU, FIRST_GPU]) == [CPU, FIRST_GPU, SECOND]
    begun = run_started(t=0, backend="cuda", gpu=1)
    of_gpu = events.Device(t=0, gpu=1), events.Telemetry(t=0, gpu=1), begun
    asked = events.Limits(t=0, backend="cuda", gpu=1), requests.ProbeRequest("cuda", 1)
    assert {told.device_id for told in (*of_gpu, *asked)} == {SECOND}
    assert events.Limits(t=0, backend="cpu", gpu=1).device_id == requests.ProbeRequest("cpu", 1).device_id == CPU
    assert events.Telemetry(t=0).device_id == FIRST_GPU, "of an old session"
