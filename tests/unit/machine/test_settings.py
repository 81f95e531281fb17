"""Settings: their precedence, refusals in one sentence, and `fwtui config`."""

import json
import os
from contextlib import suppress
from pathlib import Path
from threading import Thread

import platformdirs
import pytest

from fwtui.__main__ import main
from fwtui.common import environment, small_file, user_folders
from fwtui.common.errors import Refused
from fwtui.experiment.device import CPU
from fwtui.machine import device_cache, settings, trust
from fwtui.machine.settings import Settings, Value


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
    path = write(folder, 'theme = "nord"\nsamples = "off"\npresent = true\n')
    found = settings.load({"FWTUI_SAMPLES": "on"}).with_options({"present": "no", "theme": None})
    assert {name: found.value(name) for name in ("theme", "samples", "present")} == {
        "theme": Value("nord", "file", str(path)),
        "samples": Value("on", "environment", "FWTUI_SAMPLES"),
        "present": Value("no", "option", "--present"),
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("present = [1, 2]", "config.toml: present is not text, a number, true or false"),
        ("rank_timeout = nan", "config.toml: rank_timeout: rank_timeout 'nan' is not a number from 1 to 3600"),
        ('present = "maybe"', "config.toml: present: present 'maybe' is not supported; choose no or yes"),
        ("colour = 1", "config.toml: 'colour' is not a setting; choose one of theme, keep_sessions,"),
        ("[colours]\na = 1", "config.toml: 'colours' is not a setting"),
        ("theme = ", "config.toml is not TOML"),
        ("[theme]\na = 1", "config.toml: theme is not text"),
        ("a = " + "[" * 5000, "config.toml is not TOML"),
    ],
    ids=lambda x: x[:30],
)
def test_a_mistake_in_the_file_is_one_sentence(folder: Path, text: str, sentence: str) -> None:
    write(folder, text)
    with pytest.raises(Refused) as refusal:
        settings.load({})
    assert str(refusal.value).startswith(sentence) and "\n" not in str(refusal.value)


def test_mistakes_in_the_environment_and_in_options_are_named(folder: Path) -> None:
    for variable, value in (("FWTUI_RANK_TIMEOUT", "0"), ("FWTUI_SAMPLES", "x")):
        with pytest.raises(Refused, match=f"^{variable}: "):
            settings.load({variable: value})
    with pytest.raises(Refused, match="samples 'x' is not supported"):
        Settings(folder / "config.toml").with_options({"samples": "x"})
    write(folder, 'theme = "\\u001b[31mred"\n')
    assert settings.load({}).text("theme") == "[31mred"


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


def test_values_and_their_sources(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, 'theme = "nord"\n')
    monkeypatch.setenv("FWTUI_SAMPLES", "off")
    assert main(["config"]) == 0
    lines = {words[0]: words for words in (line.split() for line in capsys.readouterr().out.splitlines()) if words}
    assert lines["theme"][1:3] == ["nord", "file"] and lines["samples"][1:3] == ["off", "FWTUI_SAMPLES"]
    assert lines["present"][1:3] == ["no", "default"]
    assert set(settings.KEYS) <= set(lines)
    assert main(["config", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["there"] and told["settings"]["samples"] == {
        "value": "off", "origin": "environment", "where": "FWTUI_SAMPLES", "variable": "FWTUI_SAMPLES",
        "about": "PC sampling of GPU runs for warp stall reasons: auto, on or off",
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
