"""Find out why GPUs cannot be used, for a message with advice."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from scalestudy.hardware.devices import VISIBLE, read_gpus
from scalestudy.hardware.installed import container_image
from scalestudy.hardware.nvml import driver_cuda, driver_version, unavailable

FIRST_DEVICE = Path("/dev/nvidia0")


def driver_is_dead() -> bool:
    """Whether this machine has an NVIDIA GPU, but NVML cannot be used."""
    return FIRST_DEVICE.exists() and bool(unavailable())


class Reason(NamedTuple):
    """A reason (a clause) and what to do about it (a sentence)."""

    words: str
    action: str


class Build(NamedTuple):
    """How a framework was built.

    Attributes:
        name: Name with the version: "TensorFlow 2.21.0".
        cuda: Version of CUDA that it was built with; None for a build without CUDA.
    """

    name: str
    cuda: str | None


def why_unseen(variables: Mapping[str, str] = os.environ) -> Reason:
    """Return why a process with these variables sees no GPU, from NVML's current state."""
    # In the order in which a GPU is reached: the driver, the permission to open it, the variable that names it.
    if error := unavailable():
        if container_image(variables):
            return Reason(
                f"the container has no NVIDIA driver ({error})",
                "Start it with the driver's libraries: --nv of Apptainer; elsewhere "
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
            )
        return Reason(
            f"NVIDIA's driver is missing or cannot be used ({error})",
            'Use a node on which nvidia-smi lists GPUs, or set device = "cpu".',
        )
    gpus = read_gpus()
    if not gpus:
        return Reason(
            "the NVIDIA driver works, but this process may open no GPU",
            "Request GPUs from the launcher; `nvidia-smi -L` must list them there.",
        )
    return Reason(
        f"{VISIBLE}={variables.get(VISIBLE)!r} shows none of the {len(gpus)} GPUs of the node",
        "Correct it or unset it: `nvidia-smi -L` lists the names, and MIG instances where MIG is on.",
    )


def why_not_listed(build: Build, words: tuple[str, str] | None) -> Reason:
    """Return why a framework lists fewer GPUs than NVML; `words` are from `EngineTraits.why_no_gpus`."""
    if build.cuda is None:
        device, instead = ("gpu", "'.[gpu]' instead of '.[cpu]'")
        if build.name.startswith("PyTorch"):
            device, instead = "torch-gpu", "'.[torch]' with PyTorch's wheels for CUDA"
        return Reason(
            f"{build.name} is built without CUDA",
            f"Install {instead} from the project's folder (DEVICE={device} environments/venv.sh does), or "
            'set device = "cpu".',
        )
    # A driver serves all CUDA of its major version; see NVIDIA's notes on CUDA compatibility.
    served = driver_cuda()
    if served is not None and served[0] < int(build.cuda.partition(".")[0]):
        return Reason(
            f"driver {driver_version()} is too old: it serves CUDA {served[0]}.{served[1]}, and "
            f"{build.name} is built with {build.cuda}",
            "Ask the site to update the driver, or load CUDA's compatibility package.",
        )
    if words is not None:
        return Reason(*words)
    return Reason(
        f"{build.name}, built with CUDA {build.cuda}, does not say why",
        "Run nvidia-smi there.",
    )
