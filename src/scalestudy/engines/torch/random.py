"""TensorFlow's random numbers in PyTorch, so that models start with the same weights for the same seed.

Numbers come from the counter-based generator Philox4x32-10 (Salmon et al., SC11), in PyTorch operations.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

MASK = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
SCRAMBLER = 0x02461E293EC8F720
"""Key with which TensorFlow derives a key from a seed."""
SMALLEST = 1e-7
"""Lower limit of the numbers whose logarithm is computed."""
CANDIDATES = 6
"""Counters computed per group for a truncated distribution; too few for one group in 10^13."""
RESERVED = 64
"""Counters that TensorFlow reserves for each number of a truncated distribution."""
IN_CACHE = 16_384
"""Counters computed at once on a CPU, to fit in its cache."""
MODULUS = 2**31 - 2
"""Keras on TensorFlow takes seeds modulo this number."""


def uniform(key: int, counter: tuple[int, int], groups: int, device: Any = None) -> Any:
    """Draw numbers in [0, 1), shape [groups, 4], float32. Each group of four increments the counter by one.

    Args:
        key: 64-bit key.
        counter: Lower and upper 64 bits of the first counter.
        groups: Number of groups.
        device: Device on which the numbers are computed.
    """
    numbers = torch.empty(groups, 4, device=device)
    part = IN_CACHE if numbers.device.type == "cpu" else max(groups, 1)
    for first in range(0, groups, part):
        stop = min(first + part, groups)
        low = torch.arange(first, stop, dtype=torch.int64, device=device) + counter[0]
        for place, word in enumerate(_words(key, low, counter[1])):
            numbers[first:stop, place] = word.bitwise_and_(0x7FFFFF)
    return numbers.mul_(2.0**-23)


def normal(key: int, counter: tuple[int, int], groups: int, device: Any = None) -> Any:
    """Draw numbers from the standard normal distribution, shape [groups, 4], by the same stream."""
    return _normal(uniform(key, counter, groups, device))


def seeded_uniform(seed: Sequence[int], count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw numbers in [0, 1) from a Keras seed, shape [count], float32 or float64."""
    key, high = _key(seed)
    low = torch.arange(-(-count // _per_counter(dtype)), dtype=torch.int64, device=device)
    return _fractions(torch.stack(_words(key, low, high), 1), dtype).view(-1)[:count]


def seeded_normal(seed: Sequence[int], count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw numbers from the standard normal distribution (Box and Muller 1958); see `seeded_uniform`."""
    even = count + -count % _per_counter(dtype)
    return _normal(seeded_uniform(seed, even, dtype, device).view(-1, _per_counter(dtype))).view(-1)[:count]


def seeded_truncated_normal(seed: Sequence[int], count: int, dtype: torch.dtype, device: Any) -> Any:
    """Draw normal numbers within two standard deviations: the first such numbers of each group."""
    key, high = _key(seed)
    size = _per_counter(dtype)
    first = torch.arange(-(-count // size), dtype=torch.int64, device=device) * size * RESERVED
    low = (first[:, None] + torch.arange(CANDIDATES, device=device)).view(-1)
    numbers = _normal(_fractions(torch.stack(_words(key, low, high), 1), dtype)).view(len(first), -1)
    outside = (numbers.abs() >= 2).to(torch.int8)
    chosen = torch.sort(outside, dim=1, stable=True).indices[:, :size]
    return numbers.gather(1, chosen).view(-1)[:count]


def _per_counter(dtype: torch.dtype) -> int:
    return 2 if dtype == torch.float64 else 4


def _key(seed: Sequence[int]) -> tuple[int, int]:
    """Return the key of a seed and the upper 64 bits of its first counter; the lower 64 bits are 0."""
    low, high = (int(part) % MODULUS for part in seed)
    one, two, three, four = (int(word) for word in _words(SCRAMBLER, torch.tensor([low]), high))
    return one | two << 32, three | four << 32


def _words(key: int, low: Any, high: int) -> tuple[Any, Any, Any, Any]:
    """Return the four words of 32 bits at each counter (lower 64 bits `low`, shape [n]), int64, [n] each."""
    # A product of two words fills 64 bits exactly, so the sign of int64 does not matter.
    one, two = low & MASK, (low >> 32) & MASK
    three, four = torch.full_like(low, high & MASK), torch.full_like(low, (high >> 32) & MASK)
    free = torch.empty_like(low)
    first, second = key & MASK, (key >> 32) & MASK
    for _ in range(ROUNDS):  # `two` and `four` keep bits above their 32, which the next round cuts off
        three.mul_(MULTIPLIERS[1])
        torch.bitwise_right_shift(three, 32, out=free).bitwise_xor_(two).bitwise_xor_(first).bitwise_and_(
            MASK
        )
        two, three = three, two
        one.mul_(MULTIPLIERS[0])
        torch.bitwise_right_shift(one, 32, out=three).bitwise_xor_(four).bitwise_xor_(second).bitwise_and_(
            MASK
        )
        four, one, free = one, free, four
        first, second = (first + WEYL[0]) & MASK, (second + WEYL[1]) & MASK
    return one, two.bitwise_and_(MASK), three, four.bitwise_and_(MASK)


def _fractions(words: Any, dtype: torch.dtype) -> Any:
    """Convert words [n, 4] to numbers in [0, 1): four of 23 bits (float32), or two of 52 bits (float64)."""
    if dtype == torch.float64:
        return (((words[:, ::2] & 0xFFFFF) << 32) | words[:, 1::2]).to(dtype) * 2.0**-52
    return (words & 0x7FFFFF).to(torch.float32) * 2.0**-23


def _normal(fractions: Any) -> Any:
    """Convert pairs of numbers in [0, 1) to pairs of normal numbers; shape [n, even]."""
    first, second = fractions.view(-1, 2).unbind(1)
    radius = torch.sqrt(-2 * torch.log(torch.clamp(first, min=SMALLEST)))
    angle = (2 * math.pi * second.double()).to(second.dtype)
    return torch.stack([torch.sin(angle) * radius, torch.cos(angle) * radius], 1).view(fractions.shape)
