"""Random numbers of a sample, which follow from the seed, the epoch and the sample alone."""

import numpy as np
import numpy.typing as npt

from scalestudy.data.order import Indices

Words = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniforms(seed: int, epoch: int, rows: Indices, count: int) -> npt.NDArray[np.float64]:
    """`count` numbers in (0, 1) for each row, shape [b, count]: the same whoever asks, in whatever batch.

    Counters through the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", 2014), twice for what names a sample and once for each of its numbers.
    """
    with np.errstate(over="ignore"):
        key = _mixed(_mixed(np.array([seed], np.uint64) * _GOLDEN + np.uint64(1)) + np.uint64(epoch))
        streams = _mixed(_mixed(key + rows.astype(np.uint64)))
        counters = (np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN)[None]
        words = _mixed(streams[:, None] + counters)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
