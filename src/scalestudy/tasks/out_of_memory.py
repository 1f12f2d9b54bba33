"""Errors of a device or a host without enough memory: what was used, and which settings need less."""

import re

from scalestudy.config.settings import ResolvedTrain
from scalestudy.util.errors import RunError
from scalestudy.util.tracebacks import LONGEST, error_text

WORDS = (
    "out of memory",  # PyTorch and CUDA
    "OOM when allocating",  # TensorFlow
    "can't allocate memory",  # PyTorch on CPUs
    "Unable to allocate",  # NumPy
    "ALLOC_FAILED",  # cuBLAS and cuDNN
)
"""Words of which each such error contains one."""
_ADVICE = re.compile(
    r" (?:Of the allocated memory|If reserved but unallocated)\b.*",
    re.DOTALL,
)
"""Where PyTorch's message turns from what was used to hints for its allocator."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory was not enough."""
    return any(words in str(error) for words in WORDS)


def out_of_memory(error: BaseException, train: ResolvedTrain) -> RunError:
    """Return the error to raise in its place while a run with these settings trains."""
    used = _ADVICE.sub("", error_text(error)[: 2 * LONGEST]).strip().rstrip(".")
    return RunError(
        f"a model, its gradients and steps of batch_size = {train.batch_size} that fit into memory",
        used,
        " ".join(_smaller(train)),
    )


def _smaller(train: ResolvedTrain) -> list[str]:
    """Return sentences that name settings which need less memory, those first that change least."""
    sentences = []
    twice = 2 * train.accumulate
    half = train.batch_size // 2
    if train.batch_size > 1 and train.batch == "per-worker":
        sentences.append(
            f"Set batch_size = {half} and accumulate = {twice} under [train]: the same update, in smaller"
            " steps."
        )
    elif train.batch_size > 1:
        sentences.append(
            f"Set accumulate = {twice} under [train]: the same update, in smaller steps."
        )
    if train.precision in ("float32", "tf32", "float64"):
        sentences.append(
            'Or set precision = "mixed_bfloat16", which halves most of what a step keeps.'
        )
    sentences.append("Or lower batch_size, or make the model or its inputs smaller.")
    sentences.append(
        "A device that other programs use has less: nvidia-smi lists them."
    )
    return sentences
