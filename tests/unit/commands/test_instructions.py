"""`fwtui instructions`: kernels compiled for a GPU that is not here, instruction by instruction."""

import json

import pytest
from compiled_off_gpu import nvdisasm

from fwtui.__main__ import main


@pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (the wheel nvidia-cuda-nvdisasm)")
def test_each_line_has_its_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", "-k", "katz-kider", "--for", "sm_90", "--op", "rest", "--dtype", "int32"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("katz-kider, rest, sm_90: ") and " instructions, " in told and "no spills" in told
    assert "inner loop: " in told and " VIADDMNMX" in told and "relaxations per cycle; " in told
    line, *instructions = told.partition("k45_katz_kider.py:13  own[r, x] = min(own[r, x], ")[2].splitlines()
    assert line == "number(to[r, k] + middle[k, x]))" and instructions[0].startswith(("    ", "  |"))


@pytest.mark.slow
def test_they_are_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", "-k", "naive", "--for", "sm_90", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["op"] == "relax" and data["architecture"] == "sm_90" and data["listing"]["total"] > 20
