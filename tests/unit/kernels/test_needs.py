"""A version of numba or of its simulator without a member that is used of it: one sentence at the import, for each member."""

import json
import sys
from importlib import import_module

import pytest
from in_simulator import in_simulator

from fwtui_kernels.compiled import numba_internals
from fwtui_kernels.needs import member

PACKAGE = "fwtui_kernels.compiled"


def imported_anew(module: str, adapter: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said instead of the module, where its adapter does not import."""
    for name in (f"{PACKAGE}.{module}", f"{PACKAGE}.{adapter}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError) as refused:
        import_module(f"{PACKAGE}.{module}")
    return str(refused.value)


@pytest.mark.parametrize("need", numba_internals.NEEDS, ids=lambda need: need.member)
def test_a_numba_without_a_member_is_told_in_one_sentence(need: numba_internals.Need, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_numba_cuda_without_a_member_is_told_in_one_sentence(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core", reason="the CUDA compiler wheels are not installed (pip install 'fwtui[test]' on Linux)")
    from fwtui_kernels.compiled import compiler

    assert [need.member for need in compiler.NEEDS] == list(NUMBA_CUDA)
    owner, _, name = path.rpartition(".")
    place = member("numba.cuda", owner) if "." in owner else import_module(f"numba.cuda.{owner}")
    monkeypatch.delattr(place, name)
    told = imported_anew("compiler", "compiler", monkeypatch)
    assert told.startswith(f"numba-cuda here has no {path} as fwtui knows it, so that ")


# the members are taken away in turn, and the module that makes threads of a block is imported each time
SIMULATOR = """
import json, sys
from importlib import import_module
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.cudadrv import devicearray
from fwtui_kernels.compiled.simulator_internals import NEEDS

def other(*given):
    pass

told = []
for owner, name, instead in (
    (kernel.BlockManager, "run", other),
    (kernel, "BlockManager", other),
    (kernelapi, "threading", None),
    (kernelapi.FakeCUDAShared, "array", other),
    (kernelapi, "Dim3", other),
    (kernelapi, "FakeCUDAModule", None),
    (devicearray, "FakeWithinKernelCUDAArray", None),
):
    before = getattr(owner, name)
    delattr(owner, name) if instead is None else setattr(owner, name, instead)
    for module in [m for m in sys.modules if m.startswith("fwtui_kernels.compiled.simulator")]:
        del sys.modules[module]
    try:
        import_module("fwtui_kernels.compiled.simulator_threads")
    except ImportError as error:
        told.append(str(error))
    setattr(owner, name, before)
print(json.dumps([[need.member for need in NEEDS], told]))
"""


def test_a_simulator_without_a_member_is_told_in_one_sentence() -> None:
    members, told = json.loads(in_simulator(SIMULATOR))
    expected = [f"Numba's simulator here has no {name} as fwtui knows it" for name in (members[0], *members)]
    assert [sentence.partition(", so that ")[0] for sentence in told] == expected
