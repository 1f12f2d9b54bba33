"""TensorFloat-32, which TensorFlow uses on GPUs from Ampere on unless it is told not to.

Then "float32" would mean one arithmetic on a V100 and another on an A100: factors of matrix products and
convolutions rounded from 23 bits to 10. It is a precision of its own instead.
"""

import tensorflow as tf

from scalestudy.study.feasible import TF32_NEEDS, without_tf32
from scalestudy.util.errors import UserError

OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""By this variable cuBLAS and cuDNN overrule what a program asks for: "0" switches TensorFloat-32 off."""


def set_tensor_float(precision: str) -> None:
    """Allow TensorFloat-32 under the precision "tf32", and under no other."""
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")


def refuse_other_arithmetic(
    precision: str, device: str, capability: tuple[int, int] | None, override: str | None
) -> None:
    """Refuse a device or an environment that would compute in another precision than is asked for.

    Args:
        precision: Of a point.
        device: "cpu" or "gpu".
        capability: Lowest compute capability of the GPUs; None where it is not known.
        override: Value of `OVERRIDE`; None or empty where it says nothing.

    Raises:
        UserError: If it is so.
    """
    lacking = without_tf32(precision, device, capability)
    if lacking is not None:
        raise UserError(TF32_NEEDS, lacking, 'Set precision = "float32".')
    if device == "gpu" and override and (override == "0") == (precision == "tf32"):
        raise UserError(
            f"{OVERRIDE} to be unset, since precision says what GPUs compute in",
            f'{OVERRIDE}={override} with precision = "{precision}"',
            f"Unset {OVERRIDE} in the job or the site profile.",
        )


def capability_of_gpus() -> tuple[int, int] | None:
    """Lowest compute capability of the GPUs that TensorFlow sees; None where it says none."""
    details = tf.config.experimental.get_device_details
    gpus = tf.config.list_physical_devices("GPU")
    return min((found for gpu in gpus if (found := details(gpu).get("compute_capability"))), default=None)
