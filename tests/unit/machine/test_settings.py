"""Settings: their precedence, refusals in one sentence, and `fwtui config`."""

import json
import os
from contextlib import suppress
from pathlib import Path
from threading import Thread

import platformdirs
import pytest

from fwtui.__main__ import main, parser
from fwtui.commands.support.experiment_options import experiments_of_every_kernel, parse_experiments
from fwtui.common import environment, small_file, user_folders
from fwtui.common.errors import Refused
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import Experiment, defaults, settle
from fwtui.experiment.fields import FIELDS
from fwtui.machine import device_cache, settings, trust
from fwtui.machine.settings import Settings, Value
from fwtui_kernels import registry


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the settings file, with no environment variable set."""
    for name in [n for n in os.environ if n.startswith("FWTUI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "fwtui").mkdir()
    return tmp_path / "fwtui"


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_settings_default_and_options_win_over_environment_and_file(folder: Path) -> None:
    found = settings.load({})
    assert not found.values and found.path == folder / "config.toml"
    assert found.value("theme") == Value("fwtui", "default")
    for gpu in (False, True):
        assert found.experiment(defaults(gpu), lambda k: False) == defaults(gpu)
    path = write(folder, 'theme = "nord"\nsamples = "off"\npresent = true\n[experiment]\nn = 300\ndensity = 0.5\n')
    found = settings.load({"FWTUI_SAMPLES": "on", "FWTUI_N": "100"}).with_options({"present": "no", "theme": None})
    assert {name: found.value(name) for name in ("theme", "samples", "present", "experiment.n")} == {
        "theme": Value("nord", "file", str(path)),
        "samples": Value("on", "environment", "FWTUI_SAMPLES"),
        "present": Value("no", "option", "--present"),
        "experiment.n": Value("100", "environment", "FWTUI_N"),
    }
    experiment = found.experiment(defaults(False), lambda k: False)
    assert (experiment.n, experiment.density) == (100, 0.5)


def test_every_field_and_option_can_be_set_and_is_left_to_kernels_that_have_it(folder: Path) -> None:
    wanted = settle(Experiment(kernel="naive", n=77, density=0.25, dtype="int32", memory="pinned", repeats=3, launch="eager"))
    lines = [f'{f.name} = "{f.show(wanted)}"' for f in FIELDS if f.show(wanted) and not (f.name == "tile" and not wanted.tile)]
    write(folder, "\n".join(["[experiment]", *lines, "threads = 1024", 'pitch = "yes"']))
    found = settings.load({}).experiment(defaults(False), lambda k: False)
    assert settle(found) == settle(Experiment(**{
        **{f: getattr(wanted, f) for f in Experiment.__struct_fields__}, "options": {"threads": 1024, "pitch": 1},
    }))  # fmt: skip
    options = {o.name for k in registry().values() for o in k.options}
    assert {name.removeprefix("experiment.") for name in settings.all_keys() if "." in name} == {f.name for f in FIELDS} | options
    write(folder, '[experiment]\ntile = 64\ndtype = "int32"\nthreads = 1024\nlaunch = "graph"\n')
    found = settings.load({})
    for kernel in registry().values():
        settle(found.experiment(defaults(False), lambda k: False, kernel.id))
    assert found.experiment(defaults(False), lambda k: False).tile == 64
    assert found.experiment(defaults(True), lambda k: False, "katz-kider").options == {"threads": 1024}
    assert found.experiment(defaults(True), lambda k: False, "optimized").tile == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[experiment]\nn = 0", "config.toml: experiment.n: n 0 is outside 1 to 262144"),
        ('[experiment]\nkernel = "fast"', "config.toml: experiment.kernel: there is no kernel 'fast'"),
        ('[experiment]\ndtype = "float16"', "config.toml: experiment.dtype: dtype 'float16' is not supported by any kernel"),
        ("[experiment]\nthreads = 63", "config.toml: experiment.threads: threads '63' is not supported"),
        ("[experiment]\npower = 63", "config.toml: experiment.power is not a setting; `fwtui config` lists"),
        ("[experiment]\nn = [1, 2]", "config.toml: experiment.n is not text, a number, true or false"),
        ('present = "maybe"', "config.toml: present: present 'maybe' is not supported; choose no or yes"),
        ("colour = 1", "config.toml: 'colour' is not a setting; `fwtui config` lists"),
        ("[colours]\na = 1", "config.toml: 'colours' is not a setting"),
        ("theme = ", "config.toml is not TOML"),
        ("[theme]\na = 1", "config.toml: theme is not text"),
        ("a = " + "[" * 5000, "config.toml is not TOML"),
        ("[experiment]\nn = nan", "config.toml: experiment.n: n 'nan' is not an integer"),
        ("[experiment]\ndensity = inf", "config.toml: experiment.density: density inf is outside"),
    ],
    ids=lambda x: x[:30],
)
def test_a_mistake_in_the_file_is_one_sentence(folder: Path, text: str, sentence: str) -> None:
    write(folder, text)
    with pytest.raises(Refused) as refusal:
        settings.load({})
    assert str(refusal.value).startswith(sentence) and "\n" not in str(refusal.value)


def test_mistakes_in_the_environment_and_in_options_are_named(folder: Path) -> None:
    for variable, value in (("FWTUI_N", "many"), ("FWTUI_SAMPLES", "x"), ("FWTUI_THREADS", "1")):
        with pytest.raises(Refused, match=f"^{variable}: "):
            settings.load({variable: value})
    with pytest.raises(Refused, match="samples 'x' is not supported"):
        Settings(folder / "config.toml").with_options({"samples": "x"})
    write(folder, '[experiment]\nfile = "\\u001b[31mred.gr"\n')
    assert settings.load({}).text("experiment.file") == "[31mred.gr"


def test_a_pipe_is_read_no_further_than_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError):
            pipe.write_bytes(b"#\n" * settings.LARGEST_FILE)

    writer = Thread(target=write)
    writer.start()
    with pytest.raises(Refused, match="bytes, the limit for settings"):
        settings.load({"FWTUI_CONFIG": str(pipe)})
    writer.join(60)
    assert not writer.is_alive()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff\xfe", "is not TOML"),
        (b"#" * (settings.LARGEST_FILE + 1), "bytes, the limit for settings"),
        (b"n = " + b"9" * 5000, "is not TOML: line 1 has more than 4,096 characters; correct"),
        (b"n = " + b"[\n" * 20_000, "is not TOML: its tables are nested too deeply; correct"),
    ],
    ids=["binary", "large", "a long line", "nested"],
)
def test_settings_that_are_none_or_would_take_long_are_refused(text: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(text)
    with pytest.raises(Refused, match=words):
        settings.load({"FWTUI_CONFIG": str(tmp_path / "c.toml")})


def test_a_folder_and_an_unwritten_pipe_hold_no_file(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "c.toml")
    with pytest.raises(TimeoutError, match="nobody writes into it"):
        small_file.read_beginning(tmp_path / "c.toml", 9, patience=0.01)
    with pytest.raises(Refused, match="cannot be read: nobody writes into it; fix"):
        settings.load({"FWTUI_CONFIG": str(tmp_path / "c.toml")})
    (tmp_path / "plain").write_text("")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_CONFIG_HOME", str(tmp_path / "plain"))
        assert not settings.load({}).values
    (folder / "config.toml").mkdir()
    with pytest.raises(Refused, match="cannot be read"):
        settings.load({})
    with pytest.raises(Refused, match=r"FWTUI_CONFIG names other\.toml, which does not exist"):
        settings.load({"FWTUI_CONFIG": str(tmp_path / "plain" / "other.toml")})


def test_run_takes_the_settings_and_its_flags_win(folder: Path) -> None:
    write(folder, '[experiment]\nkernel = "serial"\nn = 40\nseed = 3\n')
    asked = parse_experiments(parser("run").parse_args(["run", "--seed", "5"]), False)
    assert [(e.kernel, e.n, e.seed) for e in asked] == [("serial", 40, 5)]
    asked = parse_experiments(parser("run").parse_args(["run", "-k", "scipy,tiled-cpu", "-n", "50"]), False)
    assert [(e.kernel, e.n, e.seed) for e in asked] == [("scipy", 50, 3), ("tiled-cpu", 50, 3)]
    fits, left_out = experiments_of_every_kernel(parser("run").parse_args(["run", "--all"]), False, lambda e: settle(e))
    assert {e.n for e in fits} == {40} and len(fits) + len(left_out) == len(registry())


def test_values_and_their_sources(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, 'theme = "nord"\n')
    monkeypatch.setenv("FWTUI_N", "77")
    assert main(["config"]) == 0
    lines = {words[0]: words for words in (line.split() for line in capsys.readouterr().out.splitlines()) if words}
    assert lines["theme"][1:3] == ["nord", "file"] and lines["experiment.n"][1:3] == ["77", "FWTUI_N"]
    assert lines["samples"][1:3] == ["auto", "default"]
    assert set(settings.all_keys()) <= set(lines)
    assert main(["config", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["there"] and told["settings"]["experiment.n"] == {
        "value": "77", "origin": "environment", "where": "FWTUI_N", "variable": "FWTUI_N",
        "about": "number of vertices, 1 to 65536, on several devices up to 262144",
    }  # fmt: skip
    assert main(["config", "--path"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "config.toml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('theme = "pink"', "config.toml: theme: there is no theme 'pink'; choose one of fwtui, textual-dark"),
        ('[keymap]\nrun = "x"', "config.toml: 'keymap' is not a setting"),
    ],
)
def test_invalid_looks_are_refused(folder: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, text)
    assert main(["config"]) == 2
    assert capsys.readouterr().err.startswith(f"fwtui: {sentence}")


def test_a_user_without_a_home_has_the_default_settings_and_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    for kind in ("config", "cache", "data"):
        monkeypatch.setattr(platformdirs, f"user_{kind}_path", none)
    assert not settings.load({}).values and not trust.is_trusted(Path("mine.py"))
    assert environment.code_cache.__wrapped__().folder is None and not device_cache.write("limits", CPU, b"[]")
    assert user_folders.data_folder() == user_folders.NO_HOME
