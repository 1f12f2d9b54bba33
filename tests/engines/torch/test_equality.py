"""Same batches, same answer: any number of PyTorch's workers, and TensorFlow's."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equality import CHANGED, TOLERANCE, assert_equal, case, finish, prepared_sets, start, weights
from scalestudy.launch import reserve

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

OTHER_ENGINE = {"float64": 1e-6, "float32": 1e-3}
"""Largest difference between the engines' weights, relative to the largest change. In float64 it comes from
TensorFlow, where Keras rounds rates and momenta to float32."""
OPTIMIZERS = {"nesterov": 1e-5, "adamw": 1e-3, "lamb": 1e-3}
"""The same by optimizer with Keras's constants. Adaptive ones divide by moments close to zero. PyTorch adds
1e-6 to the norm by which it clips."""
MIXED = 0.1
"""The same for four steps in mixed precision."""
SAME = [
    *[("plain", "ddp", n, precision) for n in (2, 3) for precision in ("float64", "float32")],
    ("unet", "ddp", 2, "float64"),
    ("unet", "ddp", 4, "float64"),
    ("plain", "ddp", 4, "float64"),
    ("plain", "torch-virtual", 14, "float64"),
]


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

    double, single, drops = ("plain", "float64"), ("plain", "float32"), ("cnn", "float64")
    alone = [double, single, ("unet", "float64")]
    mixed = ("plain", "mixed_bfloat16"), ("plain", "mixed_float16")
    few = {"orders": {"steps": 4}}  # rounding separates any two runs later
    augmented = {"changed": CHANGED["cnn"]}
    buffers = {"sync": False, "changed": {"frozen_epochs": 2}, "label": "buffers"}
    optimizers = [
        {
            "changed": {
                "optimizer": name,
                "learning_rate": 0.01,
                "optimizer_constants": "keras",
                "clip_norm": None if name == "adamw" else 0.5,  # it enlarges the 1e-6 that PyTorch adds
            },
            "label": name,
        }
        for name in OPTIMIZERS
    ]

    def optimized(implementation: str, workers: int) -> list[dict[str, Any]]:
        return [made for more in optimizers for made in of(implementation, workers, double, **more)]

    with reserve.ports(12) as port:
        tensorflow = [
            *of("single", 1, *alone),
            *of("single", 1, double, **augmented),
            *optimized("single", 1),
            *of("virtual", 2, ("unet", "float64"), sync=False),
            *of("single", 1, mixed[0], **few),
        ]
        finish(start(tensorflow, 1, port, out))
        torch = [
            *of("torch-single", 1, *alone, drops),
            *of("torch-single", 1, *mixed, **few),
            *of("torch-single", 1, double, **augmented),
            *kept("torch-single", 1),
            *optimized("torch-single", 1),
            *resumed("torch-single", 1, "torch-single1"),
            *of("torch-virtual", 2, ("unet", "float64"), sync=False),
            *of("torch-virtual", 14, double),
            *of("torch-virtual", 2, ("buffers", "float64"), **buffers),
            *of("torch-virtual", 2, drops, ("own", "float64")),
            *of("torch-virtual", 3, ("own", "float64")),
        ]
        finish(
            start(torch, 1, port, out)
            + start(
                [
                    *of("ddp", 2, *alone, drops, ("own", "float64")),
                    *of("ddp", 2, *mixed, **few),
                    *of("ddp", 2, double, **augmented),
                    *of("ddp", 2, ("unet", "float64"), sync=False),
                    *of("ddp", 2, single, bucket_size="64 KiB"),
                    *kept("ddp", 2),
                    *resumed("ddp", 2, "ddp2"),
                    *of("ddp", 2, ("buffers", "float64"), **buffers),
                    *of("ddp", 2, double, label="planted", orders={"planted": 1}),
                    *of("ddp", 2, drops, label="again"),
                    *optimized("ddp", 2),
                ],
                2,
                port + 3,
                out,
            )
        )
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


@pytest.mark.parametrize(("task", "workers"), [("cnn", 2), ("own", 2), ("own", 3)])
def test_workers_draw_the_same_dropout_wherever_they_are_computed(results, task, workers):
    names = (f"{task}-{kind}{workers}-float64-sync" for kind in ("torch-virtual", "ddp"))
    assert_equal(results, *names, TOLERANCE["float64"])


@pytest.mark.parametrize(
    ("task", "precision"), [("plain", "float64"), ("plain", "float32"), ("unet", "float64")]
)
def test_weights_equal_those_of_tensorflow(results, task, precision):
    names = (f"{task}-{kind}-{precision}-sync" for kind in ("single1", "torch-single1"))
    assert_equal(results, *names, OTHER_ENGINE[precision])


def test_workers_with_their_own_statistics_equal_tensorflows(results):
    names = [f"unet-{kind}2-float64-own" for kind in ("virtual", "torch-virtual", "ddp")]
    assert_equal(results, names[1], names[2], TOLERANCE["float64"])
    assert_equal(results, names[0], names[2], OTHER_ENGINE["float64"])


def test_buffers_are_those_of_the_first_worker_and_parts_are_frozen_wherever_workers_are(results):
    names = (f"buffers-{kind}2-float64-own-buffers" for kind in ("torch-virtual", "ddp"))
    assert_equal(results, *names, TOLERANCE["float64"])
    _, _, stored = weights(results, "buffers-ddp2-float64-own-buffers")
    assert len(stored["digests"]) == 2 and len(set(stored["digests"])) == 1


def test_samples_are_changed_alike_for_every_engine(results):
    names = [f"plain-{kind}-float64-sync-changed" for kind in ("single1", "torch-single1", "ddp2")]
    assert_equal(results, names[1], names[2], TOLERANCE["float64"])
    assert_equal(results, names[0], names[1], OTHER_ENGINE["float64"])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_and_clipped_gradients_are_those_of_every_engine(results, optimizer):
    names = [f"plain-{kind}-float64-sync-{optimizer}" for kind in ("single1", "torch-single1", "ddp2")]
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
    assert_equal(results, *(f"plain-{kind}-{precision}-sync" for kind in (one, other)), MIXED)


def test_buckets_are_summed_each_by_itself_and_to_the_same_bits(results):
    assert_same_bits(results, "plain-ddp2-float32-sync", "plain-ddp2-float32-sync-64 KiB")


def test_a_run_repeats_bit_for_bit_and_goes_on_bit_for_bit(results):
    assert_same_bits(results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-again")
    assert_same_bits(results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-from-ddp2")
    alone = "cnn-torch-single1-float64-sync"
    assert_same_bits(results, alone, f"{alone}-from-torch-single1")


def test_workers_agree_and_a_planted_divergence_does_not(results):
    for workers in (2, 3, 4):
        _, _, stored = weights(results, f"plain-ddp{workers}-float64-sync")
        assert len(stored["digests"]) == workers
        assert len(set(stored["digests"])) == 1
    _, _, planted = weights(results, "plain-ddp2-float64-sync-planted")
    assert len(set(planted["digests"])) == 2
