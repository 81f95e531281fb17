"""Fills in what an experiment leaves open: the kernel for `auto`, and the device on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.experiment.devices import ALL, Place, written
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, changed, kernel_named, settle
from fwtui.machine import hardware, tuned
from fwtui.machine.tuned import Config
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.plan import Target

MEASURED, KNOWN = "measured here", "best known"
TYPICAL = {"cpu": 1024, "cuda": 4096}  # a file's size is known only once it is read


def resolved(experiment: Experiment) -> Experiment:
    """The experiment with a real kernel, tile, options and launch mode; its `auto` says why.

    Taken from the results of `fwtui tune` on this device at the size nearest to n; without them, the first rung of
    fwtui_kernels.auto.in_order that takes the size and number type. Raises Refused if no kernel takes it.
    """
    if experiment.devices == ALL:
        experiment = changed(experiment, devices=written(all_gpus()))
    if experiment.kernel != AUTO.id:
        return experiment
    if experiment.devices:
        backend = "cpu" if experiment.places and experiment.places[0].gpu is None else "cuda"
        ranked = next(kernel.id for kernel in registry().values() if kernel.ranked and kernel.backend == backend)
        return changed(experiment, kernel=ranked, tile=0, options={}, launch="", auto=KNOWN)
    device = auto_device(experiment)
    if experiment.graphs > 1:
        return changed(experiment, kernel=_stacked(device == CPU, experiment.n), tile=0, options={}, launch="", auto=KNOWN)
    first: Refused | None = None
    for config, why in _choices(experiment, device):
        picked = changed(config.applied(experiment), auto=why)
        try:
            settle(picked, device.simulated)
            _check_device(picked, device)
        except Refused as refusal:
            first = first or refusal
        else:
            return picked
    raise first or Refused(f"no kernel takes {experiment.dtype}; choose another number type")


def all_gpus() -> tuple[Place, ...]:
    """A place for each GPU. Raises NoGpu if there is none."""
    found = hardware.gpus()
    if not found.gpus:
        raise NoGpu(f"there is no GPU here for devices all ({found.reason}); give processes on the CPU, such as cpu,cpu")
    return tuple(Place(0, gpu) for gpu in range(len(found.gpus)))


def auto_device(experiment: Experiment) -> DeviceId:
    """The device for auto, unless the experiment names one: a GPU if there is one."""
    if experiment.device_id.backend != "auto":
        return experiment.device_id
    return FIRST_GPU if hardware.gpus().gpus and hardware.cuda_package() is not None else CPU


def _choices(experiment: Experiment, device: DeviceId) -> Iterator[tuple[Config, str]]:
    backend = "cpu" if device == CPU else "cuda"
    n = TYPICAL[backend] if experiment.file else experiment.n
    if not device.simulated and n > 0:
        trials = tuned.load(device)
        nonnegative = not experiment.file and experiment.low >= 0 and not experiment.negative
        for trial in tuned.fastest(trials, n, experiment.dtype, nonnegative):
            if not trial.code:  # a user's kernel runs only by its name
                yield trial.config, MEASURED
    for kernel in in_order(backend, experiment.dtype):
        yield Config(kernel=kernel.id), KNOWN


def _check_device(picked: Experiment, device: DeviceId) -> None:
    """Raises Refused if the GPU cannot do what the kernel needs."""
    found = hardware.gpus().gpus
    if device.backend != "cuda" or device.index >= len(found):
        return
    target = Target("cuda", found[device.index].compute_capability, found[device.index].multiprocessors or 0)
    sentence = kernel_named(picked.kernel).lacks(picked.shape(max(picked.n, 1)), target)
    if sentence:
        raise Refused(sentence)


def check_there(asked: tuple[Place, ...], count: int, reason: str) -> None:
    """Raises NoGpu if one of the GPUs is not among those here."""
    for place in asked:
        if not place.host and place.gpu is not None and place.gpu >= count:
            known = f"{count} found" if count else reason
            raise NoGpu(f"there is no GPU {place.gpu} of devices {written(asked)} here ({known}); name others, or cpu,cpu")


def _stacked(on_cpu: bool, n: int = 1) -> str:
    """The kernel for many graphs of n vertices at once: the CPU's takes larger ones."""
    known = {kernel.backend == "cpu": kernel for kernel in registry().values() if kernel.stacks}
    return known[on_cpu or n > known[False].max_n].id


def device_of(experiment: Experiment) -> DeviceId:
    """The device that runs the experiment on this machine. Raises NoGpu if it needs a GPU and there is none."""
    kernel, asked = kernel_named(experiment.kernel), experiment.device_id
    if kernel.backend != "cuda":
        return CPU
    if asked.simulated and kernel.simulates:
        return asked
    found = hardware.gpus()
    if experiment.places:
        check_there(experiment.places, len(found.gpus), found.reason)
        asked = DeviceId("cuda", experiment.places[0].gpu or 0)
    if asked.backend == "cuda" and asked.index >= len(found.gpus):
        raise NoGpu(
            f"there is no GPU {experiment.device} here ({found.reason or f'{len(found.gpus)} found'}); use --device simulator"
        )
    if found.gpus:
        if hardware.cuda_package() is None:
            extra = hardware.cuda_extra(found) or "cu12"
            raise NoGpu(f"numba-cuda is not installed; run: {hardware.install_command(f'fwtui[{extra}]')}")
        return asked.on("cuda")
    if experiment.file or experiment.n > SIMULATOR_MAX_N or not kernel.simulates:
        simulator = f", or n up to {SIMULATOR_MAX_N} for the simulator" if kernel.simulates else ""
        other = "tiled-cpu" if experiment.graphs == 1 else _stacked(True)
        raise NoGpu(f"{kernel.id} needs a GPU ({found.reason}); choose a CPU kernel such as {other}{simulator}")
    return DeviceId("simulator")
