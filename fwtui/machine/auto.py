"""What was left open in an experiment: the kernel that `auto` stands for, and where it runs on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, changed, kernel_named, settle
from fwtui.machine import hardware, tuned
from fwtui.machine.tuned import Config
from kernels.auto import AUTO, in_order
from kernels.plan import Target

MEASURED, KNOWN = "measured here", "best known"
TYPICAL = {"cpu": 1024, "cuda": 4096}  # a file's size is known only once it is read


def resolved(experiment: Experiment) -> Experiment:
    """The experiment with a real kernel, tile, options and launch mode, and in `auto` why it is that one.

    From the table that `fwtui tune` made on this device, of the size nearest to n; where there is none, the first rung of
    kernels.auto.in_order that takes the size and number type. Raises Refused where no kernel takes it.
    """
    if experiment.kernel != AUTO.id:
        return experiment
    backend, simulated = backend_of(experiment)
    first: Refused | None = None
    for config, why in _choices(experiment, backend, simulated):
        picked = changed(config.applied(experiment), auto=why)
        try:
            settle(picked, simulated)
            _check_device(picked, backend, simulated)
        except Refused as refusal:
            first = first or refusal
        else:
            return picked
    raise first or Refused(f"no kernel takes {experiment.dtype}; choose another number type")


def backend_of(experiment: Experiment) -> tuple[str, bool]:
    """Where auto runs, and whether that is the simulator: on a GPU where there is one."""
    if experiment.device_id.simulator:
        return "cuda", True
    gpu = experiment.device_id.gpu is not None or (bool(hardware.gpus().gpus) and hardware.cuda_package() is not None)
    return ("cuda" if gpu else "cpu"), False


def _choices(experiment: Experiment, backend: str, simulated: bool) -> Iterator[tuple[Config, str]]:
    n = TYPICAL[backend] if experiment.file else experiment.n
    if not simulated and n > 0:
        trials = tuned.load(backend, experiment.device_id.index)
        nonnegative = not experiment.file and experiment.low >= 0 and not experiment.negative
        for trial in tuned.fastest(trials, n, experiment.dtype, nonnegative):
            yield trial.config, MEASURED
    for kernel in in_order(backend, experiment.dtype):
        yield Config(kernel=kernel.id), KNOWN


def _check_device(picked: Experiment, backend: str, simulated: bool) -> None:
    """Raises Refused where the GPU cannot do what the kernel needs."""
    found, index = hardware.gpus().gpus, picked.device_id.index
    if backend == "cpu" or simulated or index >= len(found):
        return
    target = Target("cuda", found[index].compute_capability, found[index].multiprocessors or 0)
    sentence = kernel_named(picked.kernel).lacks(picked.shape(max(picked.n, 1)), target)
    if sentence:
        raise Refused(sentence)


def is_simulated(experiment: Experiment) -> bool:
    """Whether the experiment runs in Numba's simulator on this machine. Raises NoGpu where only a GPU would do."""
    kernel = kernel_named(experiment.kernel)
    if kernel.backend != "cuda":
        return False
    if experiment.device_id.simulator and kernel.simulates:
        return True
    found = hardware.gpus()
    if experiment.device_id.gpu is not None and experiment.device_id.gpu >= len(found.gpus):
        raise NoGpu(
            f"there is no GPU {experiment.device} here ({found.reason or f'{len(found.gpus)} found'}); use --device simulator"
        )
    if found.gpus:
        if hardware.cuda_package() is None:
            extra = hardware.cuda_extra(found) or "cu12"
            raise NoGpu(f"numba-cuda is not installed; run: {hardware.install_command(f'fwtui[{extra}]')}")
        return False
    if experiment.file or experiment.n > SIMULATOR_MAX_N or not kernel.simulates:
        simulator = f", or n up to {SIMULATOR_MAX_N} for the simulator" if kernel.simulates else ""
        raise NoGpu(f"{kernel.id} needs a GPU ({found.reason}); choose a CPU kernel such as tiled-cpu{simulator}")
    return True
