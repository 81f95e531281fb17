"""Where an experiment runs on this machine: on the CPU, on a GPU, or in Numba's simulator."""

from __future__ import annotations

from fwtui.common.errors import NoGpu
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, kernel_named
from fwtui.machine import hardware


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
