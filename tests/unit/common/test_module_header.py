"""Modules read without importing them."""

from pathlib import Path

import pytest

from fwtui.common.module_header import Outline


@pytest.mark.parametrize("line", ["In one line.", "def is a word of Python,\nclass another one."])
def test_what_stands_above_the_first_function_is_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(f'"""{line}\n\nMore.\n"""\n\nORDER = 7\nNAMES = ("a",)\n\n\n@cache\ndef read() -> int:\n    return 1\n')
    module = Outline("module", str(file))
    assert (module.about, module.order, module.constant("NAMES", tuple)) == (" ".join(line.split()), 7, ("a",))
    assert module.defines("read") and not module.defines("write")
