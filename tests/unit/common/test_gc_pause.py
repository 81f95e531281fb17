"""The collector of reference cycles rests while a program starts, and collects again afterwards."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fwtui.__main__ import main
from fwtui.common import gc_pause


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()


def test_what_was_there_is_not_looked_through_again_nor_frozen_by_others() -> None:
    gc_pause.rest()
    assert not gc.isenabled()
    gc_pause.wake()
    assert gc.isenabled() and gc.get_freeze_count() > 1000
    before = gc.get_freeze_count()
    with gc_pause.paused():
        gc_pause.wake()
        assert not gc.isenabled() and gc.get_freeze_count() == before
    assert gc.isenabled()


def test_a_command_in_somebody_elses_process_leaves_the_collector_alone(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_freeze_count()
    assert main(["kernels"]) == 0
    assert gc.isenabled() and gc.get_freeze_count() == before


def test_a_program_of_its_own_starts_at_rest_and_works_awake() -> None:
    words = "import gc, json, sys; sys.argv = ['fwtui', 'kernels']; from fwtui import __main__; "
    words += "from fwtui.common import gc_pause; told = []; "
    words += "rest = gc_pause.rest; gc_pause.rest = lambda: (rest(), told.append(gc.isenabled())); "
    words += "__main__.main(); print(json.dumps([told, gc.isenabled(), gc.get_freeze_count() > 1000]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr) == [[False], True, True]
