"""Arithmetic: seeds and precision, and refusal of what would compute otherwise than the study says."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import keras

from scalestudy.config.feasible import TF32_NEEDS, without_tf32
from scalestudy.util.errors import RunError, ScalestudyError, UserError

OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""Variable by which cuBLAS and cuDNN override the program's setting; "0" disables TensorFloat-32."""
_REFUSAL = re.compile(
    r"[^.\n]*(?:\b(?:not|cannot|require)\b[^.\n]*determinis|determinis[^.\n]*\b(?:not|cannot)\b)[^.\n]*",
    re.IGNORECASE,
)
"""Matches the sentence in which TensorFlow, XLA or PyTorch rejects a nondeterministic operation."""

_UNUSED = "find_unused_parameters=True"
"""Matches PyTorch's advice for an argument of DistributedDataParallel."""
_INDICES = re.compile(
    r"Parameter indices which did not receive grad for rank \d+: ([\d ]+)"
)


@contextmanager
def explain_refusals(weights: Sequence[keras.Variable] = ()) -> Iterator[None]:
    """Translate a framework's error about what a setting forbids: unordered sums, or unused weights.

    `weights` are those that the block trains.

    Raises:
        RunError: In place of that error; names the operation and the key to change.
    """
    try:
        yield
    except ScalestudyError:
        raise
    except Exception as error:  # the type depends on the framework
        if _UNUSED in str(error):
            raise RunError(
                "each step of a rank to use all weights that it trains, since ranks sum their gradients",
                f"a step that left some out: {_unused(str(error), weights)}",
                "Set find_unused_parameters = true under [train], which searches for them in each step, or"
                " let all branches of the model take part in the loss.",
            ) from error
        match = _REFUSAL.search(str(error))
        if match is None:
            raise
        sentence = match.group().strip()
        key = "deterministic = false"
        if "XLA" in sentence:
            key = "deterministic = false, or xla = false,"
        raise RunError(
            "operations that repeat bit for bit, as required by train.deterministic = true",
            f"one that cannot: {sentence}",
            f"Set {key} under [train], or avoid that operation in the task.",
        ) from error


def _unused(text: str, weights: Sequence[keras.Variable]) -> str:
    """Name the weights whose indices PyTorch tells."""
    match = _INDICES.search(text)
    if match is None or not weights:
        return "some of its weights had no gradient"
    names = [weights[int(index)].path for index in match[1].split()]
    text = ", ".join(names[:5])
    if len(names) > 5:
        text += " …"
    return f"no gradient reached {text}"


def refuse_other_arithmetic(
    precision: str,
    device: str,
    capability: tuple[int, int] | None,
    override: str | None,
) -> None:
    """Reject a device or an environment that would compute in a precision other than requested.

    `capability` is the lowest compute capability of the GPUs, or None if unknown. `override` is the value
    of the variable `OVERRIDE`.

    Raises:
        UserError: If the precision would differ.
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


def set_seed_and_precision(seed: int, precision: str) -> None:
    """Set seeds and precision for all that Keras builds from now on. Keras treats "tf32" as float32."""
    floatx = "float32"
    policy = precision
    if precision == "float64":
        floatx = "float64"
    if precision == "tf32":
        policy = "float32"
    keras.utils.set_random_seed(seed)
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
