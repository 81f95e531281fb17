"""Missing members of numba and numba-cuda: one sentence at the import names each."""

import sys
from importlib import import_module

import pytest

from fwtui_kernels.compiled import numba_internals
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
