"""Reports of `fwtui doctor` on this machine and on made-up ones."""

import contextlib
import io
import shutil
import sys
from pathlib import Path

import pytest
from processes import Terminal

from fwtui import __version__
from fwtui.commands import doctor
from fwtui.live import ncu
from fwtui.machine import hardware
from fwtui.machine.hardware import Hardware
from fwtui.stream.events import Device

BOARD = {"memory_bytes": 150 * 2**30, "peak_bytes_per_second": 4.81e12}
H200 = Device(t=0, name="NVIDIA H200", driver="580.65.06", cuda="13.0", compute_capability=(9, 0), **BOARD)
VOLTA = Device(t=0, name="Tesla V100", driver="580.65.06", compute_capability=(7, 0))


class Here:
    """A made-up machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def has(self, *gpus: Device, reason: str = "", driver: bool | None = None, **versions: str | None) -> None:
        """Set the GPUs and the versions of distributions (None: not installed)."""
        installed = {name.replace("_", "-"): version for name, version in versions.items()}
        real = hardware.installed_version
        facts = {
            "gpus": lambda: Hardware(gpus=gpus, gpm=H200 in gpus, reason=reason),
            "driver_present": lambda: bool(gpus) if driver is None else driver,
            "installed_version": lambda name: installed[name] if name in installed else real(name),
        }
        for name, fact in facts.items():
            self._monkeypatch.setattr(hardware, name, fact)

    def checks(self) -> dict[str, doctor.DoctorCheck]:
        return {check.name: check for check in doctor.report()}

    def check(self, name: str) -> doctor.DoctorCheck:
        return self.checks()[name]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Here:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    machine = Here(monkeypatch)
    machine.has(reason="there is no NVIDIA driver here")
    return machine


def test_a_machine_without_a_gpu_misses_nothing_and_one_that_shows_none_does(here: Here) -> None:
    checks = here.checks()
    missing = {name for name, check in checks.items() if check.state == doctor.MISSING}
    assert missing <= {"terminal"}  # that one is about whoever runs the tests
    gpu = checks["GPU"]
    assert (gpu.state, gpu.found) == ("note", "there is no NVIDIA driver here")
    here.has(reason="the NVIDIA driver was updated since it was loaded; reboot", driver=True)
    gpu = here.check("GPU")
    assert (gpu.state, gpu.fix) == ("missing", "nvidia-smi")
    assert "reboot" in gpu.found


def test_a_gpu_is_described(here: Here) -> None:
    here.has(H200, numba_cuda="0.30.4", cuda_toolkit="13.0.3")
    checks = here.checks()
    assert checks["GPU 0"].found == "NVIDIA H200, compute capability 9.0, 150 GiB, peak 4.81 TB/s"
    assert checks["driver"].found == "580.65.06, CUDA up to 13.0"
    assert {checks[name].state for name in ("numba-cuda", "GPM", "NVML")} == {"ok"}


@pytest.mark.parametrize(("gpus", "extra"), [((H200,), "cu13"), ((H200, VOLTA), "cu12")])
def test_a_missing_numba_cuda_comes_with_the_command_for_this_machine(here: Here, gpus: tuple[Device, ...], extra: str) -> None:
    here.has(*gpus, numba_cuda=None)
    check = here.check("numba-cuda")
    assert (check.state, check.found) == ("missing", "not installed")
    assert check.fix == hardware.install_command(f"fwtui[{extra}]")


def test_the_command_installs_into_the_environment_that_runs() -> None:
    assert sys.executable in hardware.install_command("x")
    for pip, command in (
        (object(), "'/some where/python' -m pip install"),
        (None, "uv pip install --python '/some where/python'"),
    ):
        told = hardware.install_command("fwtui[cu13]", "/some where/python", {"pip": pip}.get)
        assert told == f"{command} 'fwtui[cu13]'"


@pytest.mark.parametrize(
    ("gpu", "toolkit", "state"),
    [(VOLTA, "13.0.3", "missing"), (VOLTA, "12.9.1", "ok"), (H200, "12.9.1", "ok"), (H200, None, "note")],
)
def test_the_toolkit_must_suit_the_gpu(here: Here, gpu: Device, toolkit: str | None, state: str) -> None:
    here.has(gpu, numba_cuda="0.30.4", cuda_toolkit=toolkit)
    check = here.check("numba-cuda")
    assert check.state == state
    assert bool(check.fix) == (state != "ok")


@pytest.mark.parametrize(("there", "permitted", "state"), [(True, True, "ok"), (True, False, "note"), (False, True, "note")])
def test_the_permission_of_counters(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, permitted: bool, state: str
) -> None:
    (tmp_path / "params").touch()
    monkeypatch.setattr(ncu, "PARAMETERS", str(tmp_path / "params") if there else str(tmp_path / "absent"))
    monkeypatch.setattr(ncu, "permitted", lambda: permitted)
    here.has()
    check = here.check("counters")
    assert check.state == state and ("RestrictProfiling" in check.fix) == (not permitted)


class Screen(Terminal):
    encoding = "utf-8"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("term", "size", "encoding", "state", "words"),
    [
        ("xterm-256color", (120, 40), "utf-8", "ok", "120x40"),
        ("dumb", (120, 40), "utf-8", "missing", "TERM=dumb"),
        ("", (120, 40), "utf-8", "missing", "TERM=unset"),
        ("xterm", (120, 40), "iso8859-1", "note", "iso8859-1"),
        ("xterm", (59, 40), "UTF-8", "note", "59x40"),
    ],
)
def test_the_terminal(
    here: Here, monkeypatch: pytest.MonkeyPatch, term: str, size: tuple[int, int], encoding: str, state: str, words: str
) -> None:
    screen = Screen()
    screen.encoding = encoding  # type: ignore[misc]
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(size[0]))
    monkeypatch.setenv("LINES", str(size[1]))
    with contextlib.redirect_stdout(screen):
        check = here.check("terminal")
    assert check.state == state
    assert words in check.found


def test_the_report_has_folders_and_sessions(here: Here, tmp_path: Path) -> None:
    checks = here.checks()
    assert checks["data"].state == "ok" and checks["sessions"].found.startswith("0 of yours")
    folder = tmp_path / "data" / "fwtui" / "sessions"
    (kept := folder.with_name("kept")).mkdir(parents=True)
    folder.mkdir()
    for file in (folder / "one.fwt.jsonl", kept / "two.fwt.jsonl", folder / "notes.txt"):
        file.touch()
    assert here.check("sessions").found.startswith("2 of yours")
    shutil.rmtree(tmp_path / "data" / "fwtui")
    (tmp_path / "data" / "fwtui").touch()  # a file where the folder should be
    check = here.check("data")
    assert (check.state, check.fix) == ("missing", "fwtui run --record PATH")


def test_the_report_is_aligned_and_only_blocking_problems_are_errors(here: Here) -> None:
    here.has(Device(t=0, name="evil\x1b]0;title\x07 card", driver="580.1", compute_capability=(9, 0)), numba_cuda=None)
    out = io.StringIO()
    assert doctor.print_report(out) == 0
    lines = out.getvalue().splitlines()
    assert "\x1b" not in out.getvalue()
    assert any(line.startswith("GPU 0       ok") for line in lines)
    missing = next(number for number, line in enumerate(lines) if line.startswith("numba-cuda  missing"))
    assert lines[missing + 1].strip().startswith("-> ")
    here.has(reason="none", textual=None)
    assert doctor.print_report(io.StringIO()) == 1
    assert "textual" in here.check("packages").found


@pytest.mark.parametrize(
    ("driver", "ccs", "extra"),
    [
        ("580.65.06", [(9, 0)], "cu13"),
        ("580.65.06", [(7, 5), (12, 0)], "cu13"),
        ("595.1", [(9, 0), (7, 0)], "cu12"),
        ("579.99", [(9, 0)], "cu12"),
        ("525.60", [(6, 1)], "cu12"),
        ("524.1", [(9, 0)], None),
        ("580.1", [(3, 5)], None),
        ("580.1", [None, (9, 0)], "cu12"),
        ("580.1", [], None),
        ("", [(9, 0)], None),
    ],
)
def test_the_extra_that_fits(driver: str, ccs: list[tuple[int, int] | None], extra: str | None) -> None:
    found = Hardware(gpus=tuple(Device(t=0, driver=driver, compute_capability=cc) for cc in ccs))
    assert hardware.cuda_extra(found) == extra


def test_a_sign_of_a_driver_is_enough(tmp_path: Path) -> None:
    sign, sought = tmp_path / "version", list[str]()
    assert not hardware.driver_present((str(sign),), sought.append) and sought == ["cuda"]
    assert hardware.driver_present((str(sign),), lambda name: f"lib{name}.so")
    sign.touch()
    assert hardware.driver_present((str(sign),), lambda name: None)


def test_the_report_has_machine_and_versions_without_the_host_name() -> None:
    import platform

    machine = hardware.machine()
    assert machine.cores and machine.memory_bytes and machine.cpu
    assert machine.system.startswith(platform.system())
    assert platform.node() not in (machine.system, machine.cpu)
    versions = hardware.versions()
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "textual", "nvidia-ml-py"} <= versions.keys() and versions["fwtui"] == __version__
    assert hardware.installed_version("no-such-distribution") is None
