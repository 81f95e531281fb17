"""Members of numba and numba-cuda, missing ones in one sentence; layouts of arrays, where a change would give wrong numbers."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from fwtui_kernels.compiled import numba_internals
from fwtui_kernels.compiled.array_abi import BEFORE_SHAPE, array_words
from fwtui_kernels.needs import member

PACKAGE = "fwtui_kernels.compiled"


def imported_anew(module: str, adapter: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Import the module again and return the error of its adapter."""
    for name in (f"{PACKAGE}.{module}", f"{PACKAGE}.{adapter}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError) as refused:
        import_module(f"{PACKAGE}.{module}")
    return str(refused.value)


@pytest.mark.parametrize("need", numba_internals.NEEDS, ids=lambda need: need.member)
def test_a_numba_without_a_member_is_refused_in_one_sentence(need: numba_internals.Need, monkeypatch: pytest.MonkeyPatch) -> None:
    assert need.there()
    owner, _, name = need.member.rpartition(".")
    if owner == "Dispatcher":
        for kind in member("numba.core", "dispatcher.Dispatcher").__mro__[:-1]:
            if name in getattr(getattr(kind.__init__, "__code__", None), "co_names", ()):
                monkeypatch.setattr(kind, "__init__", lambda self: None)
    else:
        place = member("numba.core", owner) if "." in owner else import_module(f"numba.core.{owner}")
        monkeypatch.delattr(next((kind for kind in getattr(place, "__mro__", ()) if name in vars(kind)), place), name)
    told = imported_anew("locked_njit", "numba_internals", monkeypatch)
    assert f"has no {need.member} as fwtui knows it, so that {need.otherwise}; install numba>=0.62" in told


NUMBA_CUDA = ("dispatcher.get_current_device", "descriptor.cuda_target", "descriptor.CUDATarget.typing_context", "types.Module")


@pytest.mark.parametrize("path", NUMBA_CUDA)
def test_a_numba_cuda_without_a_member_is_refused_in_one_sentence(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core", reason="the CUDA compiler wheels are not installed (pip install 'fwtui[test]' on Linux)")
    from fwtui_kernels.compiled import compiler

    assert [need.member for need in compiler.NEEDS] == list(NUMBA_CUDA)
    owner, _, name = path.rpartition(".")
    place = member("numba.cuda", owner) if "." in owner else import_module(f"numba.cuda.{owner}")
    monkeypatch.delattr(place, name)
    told = imported_anew("compiler", "compiler", monkeypatch)
    assert told.startswith(f"numba-cuda here has no {path} as fwtui knows it, so that ")


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
