"""Layout of array arguments in compiled code: numba does not document it, and a change would give wrong numbers."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwtui_kernels.compiled.array_abi import BEFORE_SHAPE, array_words

WORDS = (*BEFORE_SHAPE, "shape 0", "shape 1", "stride 0", "stride 1")


def test_the_words_of_an_array_in_their_order() -> None:
    array = np.zeros((3, 5), np.int16)
    words = array_words(array.ctypes.data, array.itemsize, array.shape, array.strides)
    assert WORDS[:5] == ("meminfo", "parent", "nitems", "itemsize", "data")
    assert [*words] == [0, 0, 15, 2, array.ctypes.data, 3, 5, 10, 2]


READ = {  # what a probe reads, and the word where it stands
    "a.size": "nitems",
    "a.itemsize": "itemsize",
    "a.shape[0]": "shape 0",
    "a.shape[1]": "shape 1",
    "a.strides[0]": "stride 0",
    "a.strides[1]": "stride 1",
    "a[0, 0]": "data",
    "number": "number",
}


def probe(read: str) -> Callable[..., None]:
    made: dict[str, Any] = {}
    exec(f"def probe(a, number, out):\n    out[0] = {read}", made)  # noqa: S102  # the text is above
    return made["probe"]


@pytest.mark.parametrize("read", READ)
def test_a_kernel_reads_each_word_of_an_array_at_its_offset(read: str) -> None:
    """The array has no fixed order, so that no stride is constant; a number and the result array follow it."""
    compiler = pytest.importorskip("fwtui_kernels.compiled.compiler", reason="the CUDA compiler wheels are not installed")
    ptx = compiler.compiled(probe(read), ("array(int16, 2d, A)", "int32", "array(int64, 1d, C)"), (9, 0)).ptx()
    types = re.findall(r"\.param \.(?:align \d+ )?\.?(\w+) \S+_param_\d+", ptx)
    assert types == ["u64"] * len(WORDS) + ["u32"] + ["u64"] * (len(BEFORE_SHAPE) + 2), "what an argument takes"
    found = {int(place) for place in re.findall(r"ld\.param\.\w+\s+[^;]*_param_(\d+)\]", ptx)}
    places = [*WORDS, "number", *(f"out {word}" for word in (*BEFORE_SHAPE, "shape 0", "stride 0"))]
    named = {places[place] for place in found} - {"out data"}
    constant = read == "a.itemsize" and not named  # the compiler may know it
    assert constant or named == {READ[read]}, named
