"""`benchmarks/compare_loaders.py` compares loaders that deliver the same, and reports those that do not."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_loaders  # noqa: E402
from loaders.node import cached_bytes  # noqa: E402
from loaders.worker import proof  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 1)).astype(np.uint8)
SET = SimpleNamespace(inputs=IMAGES, targets=np.arange(6, dtype=np.int32) % 3)


def delivered(*batches, add=0):
    return proof(
        [
            (IMAGES[list(rows)] + np.uint8(add), SET.targets[list(rows)])
            for rows in batches
        ]
    )


@pytest.mark.parametrize("name", ["ours", "tf.data", "Grain"])
def test_every_sample_once_in_any_order_is_the_whole_set(name):
    compare_loaders.prove(name, delivered([5, 1], [0, 2, 4], [3]), SET)


@pytest.mark.parametrize(
    "batches", [[[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4, 5], [5]], [[0, 1, 2, 3, 4, 4]]]
)
@pytest.mark.parametrize("name", ["ours", "PyTorch", "tf.data"])
def test_a_sample_that_is_missing_or_comes_twice_is_found(name, batches):
    with pytest.raises((AssertionError, ValueError)):
        compare_loaders.prove(name, delivered(*batches), SET)


def test_other_pixels_are_those_of_another_decoder_or_are_refused():
    IMAGES[IMAGES > 200] = 200
    other = delivered([0, 1, 2, 3, 4, 5], add=1)
    compare_loaders.prove("tf.data", other, SET)
    with pytest.raises(AssertionError, match="PyTorch delivers other samples"):
        compare_loaders.prove("PyTorch", other, SET)
    with pytest.raises(AssertionError, match="grey levels apart"):
        compare_loaders.prove("tf.data", delivered([0, 1, 2, 3, 4, 5], add=9), SET)


def test_an_interval_holds_the_mean_of_its_ratios_and_one_ratio_has_none():
    assert compare_loaders.interval([2.0]) == "2.00"
    assert compare_loaders.interval([2.0, 8.0]).startswith("4.00 [0.00, ")
    assert compare_loaders.interval([2.0, 2.0, 2.0]) == "2.00 [2.00, 2.00]"


def test_pages_of_a_file_are_counted_that_were_just_read(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(3 * 2**20))
    assert file.read_bytes()
    assert 0 < cached_bytes([file]) <= 3 * 2**20
