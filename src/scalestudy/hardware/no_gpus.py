"""Why GPUs that are there cannot be used: in words for a message, with what to do."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from scalestudy.hardware import nvml
from scalestudy.hardware.devices import VISIBLE, read_gpus
from scalestudy.hardware.installed import container_image

AMD, NVIDIA = Path("/dev/kfd"), Path("/dev/nvidiactl")
"""Files by which AMD's and NVIDIA's drivers are reached."""


class Reason(NamedTuple):
    """Why something is so (a clause), and what to do about it (a sentence)."""

    words: str
    action: str


class Build(NamedTuple):
    """How a framework was built.

    Attributes:
        name: With its version: "TensorFlow 2.21.0".
        cuda: Version of CUDA that it was built with; None for a build without.
        rocm: Whether it was built for AMD's GPUs.
    """

    name: str
    cuda: str | None
    rocm: bool = False


def why_unseen(variables: Mapping[str, str] = os.environ, amd: Path = AMD, nvidia: Path = NVIDIA) -> Reason:
    """Why a process with these variables sees no GPU, as NVML answers now."""
    if error := nvml.unavailable():
        return _without_driver(error, container_image(variables), amd.exists(), nvidia.exists())
    every, names = read_gpus(), variables.get(VISIBLE)
    if not every:
        return Reason(
            "NVIDIA's driver is there, but no GPU that this process may open",
            "Ask the launcher for GPUs; `nvidia-smi -L` in the same place must list them.",
        )
    if names is None:  # what there is is divided into nothing
        return Reason("MIG is on, and no instance was made", "Make MIG instances, or switch MIG off.")
    return Reason(
        f"{VISIBLE}={names!r} shows none of the {len(every)} GPUs that are there",
        "Correct it or unset it: `nvidia-smi -L` lists the names.",
    )


def _without_driver(error: str, container: str | None, amd: bool, nvidia: bool) -> Reason:
    if amd and not nvidia:  # processors with graphics of AMD's have it as well
        return Reason(
            f"{AMD} is there, which is AMD's, and no driver of NVIDIA's ({error})",
            "Only GPUs of NVIDIA can be used: ask for a node that has them.",
        )
    if container:
        return Reason(
            f"the container shows no driver of NVIDIA's ({error})",
            "Start it with the driver's libraries: --nv of Apptainer; elsewhere "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    if nvidia:
        return Reason(
            f"{NVIDIA} is there, but NVML cannot be used ({error})",
            "Run nvidia-smi: a driver that was updated needs a reboot, a container needs "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    return Reason(
        f"there is no driver of NVIDIA's ({error})", 'Ask for a node with GPUs, or set device = "cpu".'
    )


def why_unlisted(
    build: Build, said: tuple[str, str] | None, *, driver: str | None, driver_cuda: tuple[int, int] | None,
    machine: str = platform.machine(),
) -> Reason:  # fmt: skip
    """Why a framework lists fewer GPUs than NVML. Pure.

    Args:
        build: The framework.
        said: What it says itself, and what to do: `EngineTraits.why_no_gpus`.
        driver: Version of the driver.
        driver_cuda: Newest CUDA that the driver serves.
        machine: The processor's architecture.
    """
    if build.rocm:
        return Reason(f"{build.name} is built for ROCm", "Install a build with CUDA for these GPUs.")
    if build.cuda is None:
        return _without_cuda(build, machine)
    if driver_cuda is not None and driver_cuda[0] < int(build.cuda.partition(".")[0]):
        return Reason(
            f"driver {driver} is too old: it serves CUDA {driver_cuda[0]}.{driver_cuda[1]}, and {build.name} "
            f"is built with {build.cuda}",
            "Have the driver updated, or load CUDA's compatibility package.",
        )
    if said is not None:
        return Reason(*said)
    return Reason(f"{build.name}, built with CUDA {build.cuda}, does not say why", "Run nvidia-smi there.")


def _without_cuda(build: Build, machine: str) -> Reason:
    if machine == "aarch64":
        return Reason(
            f"{build.name} is built without CUDA, as the wheel for {machine} is",
            'Run in an image that brings a build with CUDA, as NVIDIA\'s own, or set device = "cpu".',
        )
    return Reason(
        f"{build.name} is built without CUDA",
        "Install '.[gpu]' instead of '.[cpu]' from the project's folder (environments/venv.sh does), or set "
        'device = "cpu".',
    )


def why_not_listed(build: Build, said: tuple[str, str] | None) -> Reason:
    """The same, by the driver of this machine."""
    return why_unlisted(build, said, driver=nvml.driver_version(), driver_cuda=nvml.driver_cuda())
