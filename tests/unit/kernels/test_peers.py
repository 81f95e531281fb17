"""Other packages' ways of doing it: right for every type, and no trouble where they are not installed."""

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from pretending import Pretend

from fwtui.common.errors import NoGpu, Refused
from fwtui.engine.verify import Verifier
from fwtui.experiment.device import CPU
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.experiment.generate import fill_numpy, generate
from fwtui.graphs.canonical import canonical
from fwtui.machine.auto import settle_here
from fwtui_kernels import registry
from fwtui_kernels.peers import PACKAGES, RUNGS, installed, peers
from fwtui_kernels.plan import Kernel, Shape, Target

ALL = list(peers().values())


class Stream:
    """What a package needs of the stream that is timed."""

    handle = 77

    def synchronize(self) -> None:
        pass


def verdict(kernel: Kernel, n: int, dtype: str, **graph: Any) -> str:
    """How the kernel's distances compare with SciPy's, after two passes on the restored input."""
    made = generate(Experiment(n=n, dtype=dtype, **graph), fill_numpy)
    shape = Shape(n, 1, dtype)
    program = kernel.build(shape, Target(kernel.backend))
    buffers, stream = program.allocate(), Stream()
    program.load(made.matrix, buffers, stream)
    for _ in range(2):
        program.restore(buffers, stream)
        for step in kernel.plan(shape, False):
            program.launch(step, buffers, stream)
    distances = canonical(program.unload(buffers, stream), made, dtype)
    assert program.resources() == {}
    return Verifier().check(made, "key", distances, "full", 512, kernel.id).verdict


CASES = [(1, "float32", {}), (17, "float32", {"real": True}), (33, "int32", {"negative": 0.2}), (40, "int16", {"density": 0.1})]


class Tensor(np.ndarray):
    """As much of PyTorch's tensor as the loop uses."""

    def to(self, device: str) -> Self:
        assert device == "cuda"
        return self.copy()

    def cpu(self) -> Self:
        return self

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    def copy_(self, other: Any) -> None:
        self[...] = other


class Streams(list[int]):
    """The handles of those that a package was asked to work on."""

    @contextlib.contextmanager
    def on(self, handle: int) -> Iterator[None]:
        self.append(handle)
        yield


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Streams:
    """A made-up PyTorch."""
    streams = Streams()
    made = SimpleNamespace(
        **{"float32": np.float32, "int32": np.int32, "int16": np.int16, "add": np.add, "minimum": np.minimum},
        empty=lambda size, dtype, device="cpu": np.empty(size, dtype).view(Tensor),
        from_numpy=lambda array: array.view(Tensor),
        cuda=SimpleNamespace(stream=streams.on, ExternalStream=lambda handle: handle),
    )
    monkeypatch.setitem(sys.modules, "torch", made)  # type: ignore[arg-type]
    return streams


@pytest.mark.parametrize("name", ["torch", "torch-cpu"])
@pytest.mark.parametrize(("n", "dtype", "graph"), CASES)
def test_the_pytorch_loop_is_right_and_in_the_timed_stream(
    name: str, n: int, dtype: str, graph: dict[str, Any], torch: Streams
) -> None:
    assert verdict(peers()[name], n, dtype, **graph) == "verified"
    assert set(torch) == ({77} if name == "torch" else set())


@pytest.mark.parametrize(("n", "dtype", "graph"), CASES)
def test_the_cupy_loop_is_right_and_in_the_timed_stream(
    n: int, dtype: str, graph: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams()

    def elementwise(inputs: str, outputs: str, code: str, name: str) -> Any:
        assert (inputs, outputs) == ("T to, T onward", "T distance") and "min(distance, T(to + onward))" in code
        return lambda to, onward, distance: np.minimum(distance, to + onward, out=distance)

    made = SimpleNamespace(
        ElementwiseKernel=elementwise,
        asarray=lambda matrix: matrix.copy(),
        asnumpy=np.array,
        copyto=np.copyto,
        cuda=SimpleNamespace(ExternalStream=streams.on),
    )
    monkeypatch.setitem(sys.modules, "cupy", made)  # type: ignore[arg-type]
    assert verdict(peers()["cupy"], n, dtype, **graph) == "verified"
    assert set(streams) == {77}


@pytest.mark.parametrize("name", ["numpy", "networkx"])
@pytest.mark.parametrize(("n", "dtype", "graph"), [*CASES, (20, "int32", {"low": 0.0, "high": 2.0})])
def test_what_is_installed_is_right(name: str, n: int, dtype: str, graph: dict[str, Any]) -> None:
    assert verdict(peers()[name], n, dtype, **graph) == "verified"


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.id)
def test_a_peer_does_all_relaxations_and_is_no_rung(kernel: Kernel) -> None:
    for n in (1, 13, 64, 150):
        assert sum(step.cost.relaxations for step in kernel.plan(Shape(n), False)) == n**3
    assert kernel.id not in registry() and kernel_named(kernel.id) is kernel
    assert set(PACKAGES) == set(peers()) and set(RUNGS) <= set(registry())


def test_what_is_not_installed_or_not_simulated_is_refused_in_words(pretend: Pretend) -> None:
    pretend.packages()
    assert not installed("cupy") and installed("scipy")
    for name, distribution in PACKAGES.items():
        with pytest.raises(Refused, match=f"{distribution} is not installed here; pip install {distribution}"):
            settle(Experiment(kernel=name, n=9))
    pretend.packages("numpy")
    assert settle(Experiment(kernel="numpy", n=9)).kernel == "numpy"
    for device in ("auto", "simulator"):
        with pytest.raises(NoGpu, match="torch needs a GPU") as refusal:
            settle_here(Experiment(kernel="torch", n=9, device=device))
        assert "simulator" not in str(refusal.value)
    pretend.packages("torch")
    assert settle_here(Experiment(kernel="torch-cpu", n=9)).runs_on == CPU
