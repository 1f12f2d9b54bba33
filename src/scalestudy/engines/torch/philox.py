"""TensorFlow's random numbers, by which Keras models start with the same weights for a seed on PyTorch.

Numbers come from the counter-based generator Philox4x32-10 (Salmon et al., SC11), computed with NumPy.
Without a seed, as in training steps, they come from PyTorch's own generator.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
MASK, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
SCRAMBLER = 0x02461E293EC8F720
"""Key with which TensorFlow derives a key from a seed."""
SMALLEST = 1e-7
"""Lower limit of the numbers whose logarithm is computed."""
CANDIDATES = 6
"""Counters computed per group for a truncated distribution; too few for one group in 10^13."""
RESERVED = 64
"""Counters that TensorFlow reserves for each number of a truncated distribution."""
MODULUS = 2**31 - 2
"""Keras on TensorFlow takes seeds modulo this number."""
Seed = Sequence[int] | None


def uniform(seed: Seed, count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw numbers in [0, 1) from a Keras seed, shape [count], float32 or float64."""
    if seed is None:
        return torch.rand(count, dtype=dtype, device=device)
    return _tensor(_uniform(seed, np.arange(-(-count // _per_counter(dtype))), dtype).ravel()[:count], device)


def normal(seed: Seed, count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw numbers from the standard normal distribution (Box and Muller 1958); see `uniform`."""
    if seed is None:
        return torch.randn(count, dtype=dtype, device=device)
    fractions = _uniform(seed, np.arange(-(-count // _per_counter(dtype))), dtype)
    return _tensor(_normal(fractions).ravel()[:count], device)


def truncated_normal(seed: Seed, count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw normal numbers within two standard deviations: the first such numbers of each group."""
    if seed is None:
        return torch.nn.init.trunc_normal_(torch.empty(count, dtype=dtype, device=device))
    size = _per_counter(dtype)
    first = np.arange(-(-count // size)) * size * RESERVED
    counters = (first[:, None] + np.arange(CANDIDATES)).ravel()
    numbers = _normal(_uniform(seed, counters, dtype)).reshape(len(first), -1)
    chosen = np.argsort(np.abs(numbers) >= 2, axis=1, kind="stable")[:, :size]
    return _tensor(np.take_along_axis(numbers, chosen, 1).ravel()[:count], device)


def _tensor(numbers: NDArray[Any], device: Any) -> Any:
    return torch.from_numpy(numbers.copy()).to(device)


def _per_counter(dtype: torch.dtype) -> int:
    return 2 if dtype == torch.float64 else 4


def _uniform(seed: Sequence[int], counters: NDArray[Any], dtype: torch.dtype) -> NDArray[Any]:
    """Return numbers in [0, 1) at these counters: [n, 4] of 23 bits (float32), or [n, 2] of 52 (float64)."""
    low, high = (int(part) % MODULUS for part in seed)
    one, two, three, four = (int(word) for word in _words(SCRAMBLER, np.array([low], np.uint64), high)[0])
    words = _words(one | two << 32, counters.astype(np.uint64), three | four << 32)
    if dtype == torch.float64:
        return (((words[:, ::2] & np.uint64(0xFFFFF)) << HALF) | words[:, 1::2]).astype(np.float64) * 2.0**-52
    return (words & np.uint64(0x7FFFFF)).astype(np.float32) * np.float32(2.0**-23)


def _words(key: int, low: NDArray[np.uint64], high: int) -> NDArray[np.uint64]:
    """Return the four words of 32 bits at each counter, shape [n, 4]; `high` are the upper 64 bits of all."""
    one, two = low & MASK, low >> HALF
    three, four = (np.full_like(low, word) for word in (high & 0xFFFFFFFF, high >> 32))
    first, second = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        left, right = MULTIPLIERS[0] * one, MULTIPLIERS[1] * three
        one, two = (right >> HALF) ^ two ^ np.uint64(first), right & MASK
        three, four = (left >> HALF) ^ four ^ np.uint64(second), left & MASK
        first, second = (first + WEYL[0]) & 0xFFFFFFFF, (second + WEYL[1]) & 0xFFFFFFFF
    return np.stack([one, two, three, four], 1)


def _normal(fractions: NDArray[Any]) -> NDArray[Any]:
    """Convert pairs of numbers in [0, 1) to pairs of normal numbers; shape [n, even]."""
    first, second = fractions.reshape(-1, 2).T
    radius = np.sqrt(-2 * np.log(np.maximum(first, first.dtype.type(SMALLEST))))
    angle = (2 * np.pi * second.astype(np.float64)).astype(second.dtype)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1).reshape(fractions.shape)
