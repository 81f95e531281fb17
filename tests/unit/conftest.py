"""A machine with a GPU to profile, for tests of counters."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_ncu import Fake

from fwtui import hardware, ncu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpus", lambda: SimpleNamespace(gpus=("a GPU",), reason=""))
    monkeypatch.setattr(ncu, "permitted", lambda: True)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: None) -> Fake:
    fake = Fake(tmp_path)
    monkeypatch.setattr(ncu, "find", lambda: str(fake.path))
    return fake
