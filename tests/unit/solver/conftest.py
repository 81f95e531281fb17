"""Each test begins like a process that has solved nothing."""

from __future__ import annotations

import pytest

from fwtui.solver import warm


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> warm.SmallGraphCode:
    everyday = warm.SmallGraphCode()
    monkeypatch.setattr(warm, "everyday", everyday)
    monkeypatch.setattr(warm, "compile_for_later", lambda: None)
    return everyday
