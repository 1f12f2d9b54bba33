"""NVIDIA's management library (NVML): opened here, and asked without one refusal losing the other answers."""

from typing import Any

Library = Any
"""The module `pynvml`, or what answers like it."""
Handle = Any


def library() -> Library | None:
    """NVML, ready to be asked; None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def unavailable() -> str:
    """Why NVML cannot be asked, in its own words; "" where it can."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    return ""


def ask(nvml: Library, function: str, *arguments: Any, otherwise: Any = None) -> Any:
    """The answer of one of its functions, or `otherwise` where the driver, the device or pynvml has none."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return otherwise


def text(raw: bytes | str) -> str:
    """What older releases of pynvml give as bytes, and newer ones as text."""
    return raw.decode() if isinstance(raw, bytes) else raw


def driver_version() -> str | None:
    """Version of the GPU driver; None without one."""
    nvml = library()
    version = None if nvml is None else ask(nvml, "nvmlSystemGetDriverVersion")
    return None if version is None else text(version)


def driver_cuda() -> tuple[int, int] | None:
    """Newest version of CUDA that the driver serves, (12, 4); None where it does not say."""
    nvml = library()
    number = None if nvml is None else ask(nvml, "nvmlSystemGetCudaDriverVersion")
    return None if number is None else (int(number) // 1000, int(number) % 1000 // 10)
