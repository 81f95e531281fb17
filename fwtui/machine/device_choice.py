"""The choices of an experiment that depend on this machine: the kernel for `auto`, and the device."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import ALL, CPU, FIRST_GPU, DeviceId, RankDevice, format_devices, places
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, Settled, changed, kernel_named, settle
from fwtui.machine import hardware
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.plan import Target

KNOWN = "best known"


def settle_here(experiment: Experiment) -> Settled:
    """Return the experiment with all choices made for this machine. Raises Refused if it cannot run, NoGpu without its GPU.

    For the kernel `auto`, choose the first kernel of fwtui_kernels.auto.in_order that supports the size and data type. The field
    `auto` records that.
    """
    if experiment.devices == ALL:
        experiment = changed(experiment, devices=format_devices(all_gpus()))
    first: Refused | None = None
    for choice in _choices(experiment) if experiment.kernel == AUTO.id else (experiment,):
        try:
            settled = settle(choice, _device_of(choice).simulated)
            if choice is not experiment:
                _check_device(settled)
            if settled.devices:
                check_mpi(settled.devices)
        except Refused as refusal:
            first = first or refusal
        else:
            return settled
    raise first or Refused(f"no kernel supports {experiment.dtype}; choose another data type")


def all_gpus() -> tuple[RankDevice, ...]:
    """Return a place for each GPU. Raises NoGpu if there is none."""
    detected = hardware.gpus()
    if not detected.gpus:
        raise NoGpu(f"no GPU found for devices all ({detected.reason}); choose processes on the CPU, such as cpu,cpu")
    return tuple(RankDevice(0, gpu) for gpu in range(len(detected.gpus)))


def auto_device(experiment: Experiment) -> DeviceId:
    """Return the experiment's device, or for auto a GPU if there is one."""
    if experiment.device_id.backend != "auto":
        return experiment.device_id
    return FIRST_GPU if hardware.gpus().gpus and hardware.cuda_package() is not None else CPU


def _choices(experiment: Experiment) -> Iterator[Experiment]:
    """Return the candidates for `auto`, the best first."""
    device = auto_device(experiment)
    backend = "cpu" if device == CPU else "cuda"
    if experiment.devices:
        backend = "cpu" if experiment.places and experiment.places[0].gpu is None else "cuda"
        ranked = next(kernel.id for kernel in registry().values() if kernel.ranked and kernel.backend == backend)
        kernels = [ranked]
    else:
        kernels = [kernel.id for kernel in in_order(backend, experiment.dtype)]
    return (changed(experiment, kernel=name, code="", tile=0, options={}, launch="", auto=KNOWN) for name in kernels)


def _check_device(settled: Settled) -> None:
    """Raise Refused if the GPU lacks a feature that the kernel needs."""
    device, gpus = settled.runs_on, hardware.gpus().gpus
    if device.backend != "cuda" or device.index >= len(gpus):
        return
    target = Target("cuda", gpus[device.index].compute_capability, gpus[device.index].multiprocessors or 0)
    sentence = kernel_named(settled.kernel).lacks(settled.shape(max(settled.n, 1)), target)
    if sentence:
        raise Refused(sentence)


def check_gpus_exist(devices: tuple[RankDevice, ...], count: int, reason: str) -> None:
    """Raise NoGpu if one of the GPUs does not exist on this machine."""
    for place in devices:
        if not place.host and place.gpu is not None and place.gpu >= count:
            found_text = f"{count} found" if count else reason
            raise NoGpu(
                f"GPU {place.gpu} of devices {format_devices(devices)} was not found ({found_text}); choose others, or cpu,cpu"
            )


def _device_of(experiment: Experiment) -> DeviceId:
    """Return the device that runs the experiment on this machine. Raises NoGpu if it needs a GPU and there is none."""
    kernel, device = kernel_named(experiment.kernel), experiment.device_id
    if kernel.backend != "cuda":
        return CPU
    if device.simulated and kernel.simulates:
        return device
    here = hardware.gpus()
    if experiment.places:
        check_gpus_exist(experiment.places, len(here.gpus), here.reason)
        device = DeviceId("cuda", experiment.places[0].gpu or 0)
    if device.backend == "cuda" and device.index >= len(here.gpus):
        raise NoGpu(f"GPU {experiment.device} was not found ({here.reason or f'{len(here.gpus)} found'}); use --device simulator")
    if here.gpus:
        if hardware.cuda_package() is None:
            extra = hardware.cuda_extra(here) or "cu12"
            raise NoGpu(f"numba-cuda is not installed; run: {hardware.install_command(f'fwtui[{extra}]')}")
        return device.on("cuda")
    if experiment.file or experiment.n > SIMULATOR_MAX_N or not kernel.simulates:
        simulator = f", or n up to {SIMULATOR_MAX_N} for the simulator" if kernel.simulates else ""
        raise NoGpu(f"{kernel.id} needs a GPU ({here.reason}); choose a CPU kernel such as tiled-cpu{simulator}")
    return DeviceId("simulator")


def mpiexec() -> str:
    """Return the path of mpiexec. Raises Refused if it or mpi4py is missing."""
    own_mpiexec = Path(sys.executable).parent / "mpiexec"  # an MPI wheel installs it there
    path = str(own_mpiexec) if os.access(own_mpiexec, os.X_OK) else shutil.which("mpiexec")
    if find_spec("mpi4py") is None:
        raise _incomplete("MPI, and mpi4py is not installed")
    if path is None:
        raise _incomplete("MPI, and mpiexec was not found")
    return path


def _incomplete(missing: str) -> Refused:
    return Refused(f"several devices need {missing}; run: {hardware.install_command('fwtui[cluster]')}")


def check_mpi(devices: str) -> None:
    """Raise Refused if ranks cannot run on these devices."""
    mpiexec()
    if any(rank.gpu is not None for rank in places(devices)) and find_spec("nccl") is None:
        raise _incomplete("NCCL, and nccl4py is not installed")
