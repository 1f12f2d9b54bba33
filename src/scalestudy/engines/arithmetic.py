"""In which arithmetic a run computes: refusing devices, environments and operations that have another."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from scalestudy.study.feasible import TF32_NEEDS, without_tf32
from scalestudy.util.errors import RunError, ScalestudyError, UserError

OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""By this variable cuBLAS and cuDNN overrule what a program asks for: "0" switches TensorFloat-32 off."""
_REFUSAL = re.compile(
    r"[^.\n]*(?:\b(?:not|cannot|require)\b[^.\n]*determinis|determinis[^.\n]*\b(?:not|cannot)\b)[^.\n]*",
    re.IGNORECASE,
)
"""The sentence in which TensorFlow, XLA or PyTorch refuses an operation; there are several wordings."""


@contextmanager
def explained() -> Iterator[None]:
    """Within, an operation that a framework refuses for its want of determinism ends the run by name.

    Raises:
        RunError: If one is refused; names the key to change.
    """
    try:
        yield
    except ScalestudyError:
        raise
    except Exception as error:  # each framework has its own
        match = _REFUSAL.search(str(error))
        if match is None:
            raise
        sentence = match.group().strip()
        key = "deterministic = false, or xla = false," if "XLA" in sentence else "deterministic = false"
        raise RunError(
            "operations that repeat bit for bit, as required by train.deterministic = true",
            f"one that cannot: {sentence}",
            f"Set {key} under [train], or avoid that operation in the task.",
        ) from error


def refuse_other_arithmetic(
    precision: str, device: str, capability: tuple[int, int] | None, override: str | None
) -> None:
    """Refuse a device or an environment that would compute in another precision than is asked for.

    `capability` is the GPUs' lowest, None where it is not known; `override` the value of `OVERRIDE`.

    Raises:
        UserError: If it is so.
    """
    lacking = without_tf32(precision, device, capability)
    if lacking is not None:
        raise UserError(TF32_NEEDS, lacking, 'Set precision = "float32".')
    if device == "gpu" and override and (override == "0") == (precision == "tf32"):
        raise UserError(
            f"{OVERRIDE} to be unset, since `precision` decides the arithmetic of GPUs",
            f'{OVERRIDE}={override} with precision = "{precision}"',
            f"Unset {OVERRIDE} in the job or the site profile.",
        )
