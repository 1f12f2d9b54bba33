"""Same batches, same answer: any number of PyTorch's workers, and TensorFlow's."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equality import CHANGED, TOLERANCE, assert_equal, case, finish, prepared_sets, start, weights
from scalestudy.launch.local import reserve

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

OTHER_ENGINE = {"float64": 1e-6, "float32": 1e-3}
"""Largest difference between the engines' weights, relative to the largest change. In float64 it comes from
TensorFlow, where Keras rounds rates and momenta to float32."""
OPTIMIZERS = {"nesterov": OTHER_ENGINE["float64"], "adamw": 1e-3, "lamb": 1e-3}
"""The same by optimizer; adaptive ones divide by moments close to zero."""
MIXED = 0.1
"""The same for four steps in mixed precision."""
SAME = [
    *[("cnn", "ddp", n, precision) for n in (2, 3) for precision in ("float64", "float32")],
    ("unet", "ddp", 2, "float64"), ("unet", "ddp", 4, "float64"), ("cnn", "ddp", 4, "float64"),
    ("own", "ddp", 2, "float64"), ("own", "ddp", 3, "float64"), ("own", "torch-virtual", 4, "float64"),
    ("cnn", "torch-virtual", 14, "float64"),
]  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The weights of all cases; each group of cases is computed once, in its own processes."""
    out = tmp_path_factory.mktemp("weights")
    data = prepared_sets(tmp_path_factory.mktemp("cache"))

    def of(implementation: str, workers: int, *kinds: tuple[str, str], **more: Any) -> list[dict[str, Any]]:
        return [case(data, task, implementation, workers, p, **more) for task, p in kinds]

    def kept(implementation: str, workers: int, **orders: Any) -> list[dict[str, Any]]:
        """Train 12 of 20 steps and write a checkpoint."""
        orders = {"steps": 12, "keep": str(out / f"{implementation}{workers}.npz")} | orders
        return of(implementation, workers, ("cnn", "float64"), label="kept", orders=orders)

    def resumed(implementation: str, workers: int, source: str) -> list[dict[str, Any]]:
        orders = {"go_on": str(out / f"{source}.npz")}
        return of(implementation, workers, ("cnn", "float64"), label=f"from-{source}", orders=orders)

    double, single = ("cnn", "float64"), ("cnn", "float32")
    alone = [double, single, ("unet", "float64"), ("own", "float64")]
    mixed = ("cnn", "mixed_bfloat16"), ("cnn", "mixed_float16")
    few = {"orders": {"steps": 4}}  # rounding separates any two runs later
    augmented = {"changed": CHANGED["cnn"]}
    optimizers = [
        {"changed": {"optimizer": name, "clip_norm": 0.5, "learning_rate": 0.01}, "label": name}
        for name in OPTIMIZERS
    ]

    def optimized(implementation: str, workers: int) -> list[dict[str, Any]]:
        return [made for more in optimizers for made in of(implementation, workers, double, **more)]

    with reserve.ports(12) as port:
        tensorflow = [
            *of("single", 1, *alone), *of("single", 1, double, **augmented), *kept("single", 1),
            *optimized("single", 1),
            *of("virtual", 2, ("unet", "float64"), sync=False), *of("single", 1, mixed[0], **few),
        ]  # fmt: skip
        finish(start(tensorflow, 1, port, out))
        torch = [
            *of("torch-single", 1, *alone), *of("torch-single", 1, *mixed, **few),
            *of("torch-single", 1, double, **augmented), *kept("torch-single", 1),
            *optimized("torch-single", 1),
            *resumed("torch-single", 1, "single1"), *resumed("torch-single", 1, "torch-single1"),
            *of("torch-virtual", 2, ("unet", "float64"), sync=False),
            *of("torch-virtual", 4, ("own", "float64")), *of("torch-virtual", 14, double),
        ]  # fmt: skip
        finish(
            start(torch, 1, port, out)
            + start([
                *of("ddp", 2, *alone), *of("ddp", 2, *mixed, **few),
                *of("ddp", 2, double, **augmented), *of("ddp", 2, ("unet", "float64"), sync=False),
                *of("ddp", 2, single, bucket_size="64 KiB"), *kept("ddp", 2), *resumed("ddp", 2, "ddp2"),
                *of("ddp", 2, double, label="planted", orders={"planted": 1}),
                *of("ddp", 2, double, label="again"), *optimized("ddp", 2),
            ], 2, port + 3, out)
        )  # fmt: skip
        finish(start(of("ddp", 3, double, single, ("own", "float64")), 3, port + 6, out))
        finish(start(of("ddp", 4, double, ("unet", "float64")), 4, port + 9, out))
    return out


def assert_same_bits(out: Path, one: str, other: str) -> None:
    (_, after, _), (_, again, _) = weights(out, one), weights(out, other)
    assert all(np.array_equal(a, b) for a, b in zip(after, again, strict=True))


@pytest.mark.parametrize(("task", "implementation", "workers", "precision"), SAME)
def test_weights_equal_those_of_one_worker(results, task, implementation, workers, precision):
    names = (f"{task}-{kind}-{precision}-sync" for kind in ("torch-single1", f"{implementation}{workers}"))
    assert_equal(results, *names, TOLERANCE[precision])


@pytest.mark.parametrize(
    ("task", "precision"), [("cnn", "float64"), ("cnn", "float32"), ("unet", "float64"), ("own", "float64")]
)
def test_weights_equal_those_of_tensorflow(results, task, precision):
    names = (f"{task}-{kind}-{precision}-sync" for kind in ("single1", "torch-single1"))
    assert_equal(results, *names, OTHER_ENGINE[precision])


def test_workers_with_their_own_statistics_equal_tensorflows(results):
    names = [f"unet-{kind}2-float64-own" for kind in ("virtual", "torch-virtual", "ddp")]
    assert_equal(results, names[1], names[2], TOLERANCE["float64"])
    assert_equal(results, names[0], names[2], OTHER_ENGINE["float64"])


def test_samples_are_changed_alike_for_every_engine(results):
    names = [f"cnn-{kind}-float64-sync-changed" for kind in ("single1", "torch-single1", "ddp2")]
    assert_equal(results, names[1], names[2], TOLERANCE["float64"])
    assert_equal(results, names[0], names[1], OTHER_ENGINE["float64"])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_and_clipped_gradients_are_those_of_every_engine(results, optimizer):
    names = [f"cnn-{kind}-float64-sync-{optimizer}" for kind in ("single1", "torch-single1", "ddp2")]
    assert_equal(results, names[1], names[2], TOLERANCE["float64"])
    assert_equal(results, names[0], names[1], OPTIMIZERS[optimizer])


@pytest.mark.parametrize(
    ("one", "other", "precision"),
    [
        ("torch-single1", "ddp2", "mixed_bfloat16"),
        ("torch-single1", "ddp2", "mixed_float16"),
        ("single1", "torch-single1", "mixed_bfloat16"),
    ],
)
def test_in_mixed_precision_they_stay_near_each_other(results, one, other, precision):
    assert_equal(results, *(f"cnn-{kind}-{precision}-sync" for kind in (one, other)), MIXED)


def test_buckets_are_summed_each_by_itself_and_to_the_same_bits(results):
    assert_same_bits(results, "cnn-ddp2-float32-sync", "cnn-ddp2-float32-sync-64 KiB")


def test_a_run_repeats_bit_for_bit_and_goes_on_bit_for_bit(results):
    assert_same_bits(results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-again")
    assert_same_bits(results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-from-ddp2")
    alone = "cnn-torch-single1-float64-sync"
    assert_same_bits(results, alone, f"{alone}-from-torch-single1")


def test_what_tensorflow_has_begun_pytorch_goes_on_with(results):
    _, whole, _ = weights(results, "cnn-single1-float64-sync")
    before, after, _ = weights(results, "cnn-torch-single1-float64-sync-from-single1")
    largest = max(np.abs(a - b).max() for a, b in zip(whole, before, strict=True))
    difference = max(np.abs(a - b).max() for a, b in zip(whole, after, strict=True))
    assert difference < OTHER_ENGINE["float64"] * largest


def test_workers_agree_and_a_planted_divergence_does_not(results):
    for workers in (2, 3, 4):
        _, _, stored = weights(results, f"cnn-ddp{workers}-float64-sync")
        assert len(stored["digests"]) == workers
        assert len(set(stored["digests"])) == 1
    _, _, planted = weights(results, "cnn-ddp2-float64-sync-planted")
    assert len(set(planted["digests"])) == 2
