"""The Philox stream of random numbers, as TensorFlow draws it: the same bits for the same key and counter."""

import math
from typing import Any

import torch

MASK = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
SMALLEST = 1e-7
"""Of the numbers whose logarithm is taken, as in TensorFlow."""


def uniform(key: int, counter: tuple[int, int], groups: int, device: Any = None) -> Any:
    """Numbers in [0, 1), shape [groups, 4], of Philox4x32-10 (Salmon et al., SC11); float32.

    Args:
        key: 64 bits.
        counter: Its lower and its upper 64 bits; each group of four numbers adds one.
        groups: How many groups.
        device: Where they are made.
    """
    # Words of 32 bits in tensors of 64: a product of two fills those exactly, be it negative or not.
    low = torch.arange(groups, dtype=torch.int64, device=device) + (counter[0] & MASK)
    words = [
        low & MASK,
        ((counter[0] >> 32) + (low >> 32)) & MASK,
        torch.full_like(low, counter[1] & MASK),
        torch.full_like(low, (counter[1] >> 32) & MASK),
    ]
    keys = key & MASK, (key >> 32) & MASK
    for _ in range(ROUNDS):
        one, other = words[0] * MULTIPLIERS[0], words[2] * MULTIPLIERS[1]
        words = [
            ((other >> 32) & MASK) ^ words[1] ^ keys[0],
            other & MASK,
            ((one >> 32) & MASK) ^ words[3] ^ keys[1],
            one & MASK,
        ]
        keys = (keys[0] + WEYL[0]) & MASK, (keys[1] + WEYL[1]) & MASK
    return (torch.stack(words, 1) & 0x7FFFFF).to(torch.float32) * 2.0**-23


def normal(key: int, counter: tuple[int, int], groups: int, device: Any = None) -> Any:
    """Numbers of a normal distribution, shape [groups, 4], of the same stream (Box and Muller 1958)."""
    first, second = uniform(key, counter, groups, device).view(-1, 2).unbind(1)
    radius = torch.sqrt(-2 * torch.log(torch.clamp(first, min=SMALLEST)))
    angle = 2 * math.pi * second
    return torch.stack([torch.sin(angle) * radius, torch.cos(angle) * radius], 1).view(-1, 4)
