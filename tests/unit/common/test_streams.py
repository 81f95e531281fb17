"""Standard streams in a limited encoding."""

from __future__ import annotations

import io
import sys

import pytest

from fwtui.common.streams import ready_streams


def test_signs_of_tables_have_a_spelling_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    ready_streams()
    print("248 ms ± 0.1 %… ░▒▓█ é \udce9", flush=True)
    assert written.getvalue() == b"248 ms +- 0.1 %.. .:%# ? ?\n"
