"""NVIDIA's management library, on machines with and without a driver."""

from typing import Any

Library = Any
"""The module `pynvml`, or an object with the same functions."""
Handle = Any


def library() -> Library | None:
    """Initialize NVML and return it; None without a driver."""
    import pynvml

    if unavailable():
        return None
    return pynvml


def unavailable() -> str:
    """Initialize NVML, and return its message why it cannot be used; "" if it can."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    return ""


def ask(
    nvml: Library,
    function: str,
    *arguments: Any,
    otherwise: Any = None,
) -> Any:
    """Return the result of a function, or `otherwise` if the driver, device or pynvml does not support it."""
    try:
        return getattr(nvml, function)(*arguments)
    # AttributeError: a release of pynvml without this function.
    except (nvml.NVMLError, AttributeError):
        return otherwise


def text(raw: bytes | str) -> str:
    """Return a string of pynvml as text; older releases return bytes."""
    if isinstance(raw, bytes):
        return raw.decode()
    return raw


def driver_version() -> str | None:
    """Return the version of the GPU driver; None without one."""
    nvml = library()
    if nvml is None:
        return None
    version = ask(nvml, "nvmlSystemGetDriverVersion")
    if version is None:
        return None
    return text(version)


def driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version that the driver supports, such as (12, 4); None if unknown."""
    nvml = library()
    if nvml is None:
        return None
    version = ask(nvml, "nvmlSystemGetCudaDriverVersion")
    if version is None:
        return None
    # NVML writes 12.4 as 12040.
    return int(version) // 1000, int(version) % 1000 // 10
