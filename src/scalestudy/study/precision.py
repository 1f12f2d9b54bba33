"""What a precision asks of a device, whatever computes."""

TF32_SINCE = (8, 0)
"""Compute capability of Ampere, the first with TensorFloat-32 (NVIDIA A100 white paper, 2020)."""
TF32_NEEDS = 'GPUs from Ampere on (compute capability 8.0 or higher) for precision = "tf32"'


def without_tf32(precision: str, device: str, capability: tuple[int, int] | None) -> str | None:
    """What is there instead, where `precision` is "tf32" and the device is known to have none; else None.

    Args:
        precision: Of a point.
        device: "cpu" or "gpu".
        capability: Lowest compute capability of the GPUs; None where it is not known.
    """
    if precision != "tf32":
        return None
    if device == "cpu":
        return "a CPU"
    if capability is None or capability >= TF32_SINCE:
        return None
    return f"a GPU of compute capability {capability[0]}.{capability[1]}"
