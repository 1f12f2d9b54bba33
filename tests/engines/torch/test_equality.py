"""Same batches, same answer: any number of PyTorch's workers, their options, and TensorFlow's."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equality import (
    CHANGED,
    TOLERANCE,
    assert_equal,
    case,
    finish,
    prepared_sets,
    start,
    weights,
)
from scalestudy.launch import reserve

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
    ),
]

WHOLE = {"batch_size": 34}
"""One step per epoch."""
ROUNDED = {"fp16": 2**-11, "bf16": 2**-8}
"""Relative rounding error of one gradient."""
ONE_UPDATE = WHOLE | {"optimizer": "sgd", "learning_rate": 0.1}
"""One update of plain SGD from equal weights: what it differs by is the rounding of one sum of gradients."""


OTHER_ENGINE = {"float64": 1e-6, "float32": 1e-3}
"""Largest difference between the engines' weights, relative to the largest change. In float64 it comes from
TensorFlow, where Keras rounds rates and momenta to float32."""
MOVING_VARIANCES = (5, 11, 19)
"""Places of these in the weights of the small U-Net."""
OPTIMIZERS = ("nesterov", "adamw")
CLIPPED = 1e-5
"""The same for nesterov with clipped gradients: PyTorch adds 1e-6 to the norm by which it clips."""
MIXED = 0.1
"""The same for four steps in mixed precision."""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The weights of all cases; each group of cases is computed once, in its own processes."""
    out = tmp_path_factory.mktemp("weights")
    data = prepared_sets(tmp_path_factory.mktemp("cache"))

    def of(
        implementation: str, workers: int, *kinds: tuple[str, str], **more: Any
    ) -> list[dict[str, Any]]:
        initial = out / "initial"
        return [
            case(data, task, implementation, workers, p, initial=initial, **more)
            for task, p in kinds
        ]

    def kept(implementation: str, workers: int, **orders: Any) -> list[dict[str, Any]]:
        """Train 12 of 20 steps and write a checkpoint."""
        orders = {
            "steps": 12,
            "keep": str(out / f"{implementation}{workers}.npz"),
        } | orders
        return of(
            implementation, workers, ("cnn", "float64"), label="kept", orders=orders
        )

    def resumed(implementation: str, workers: int, source: str) -> list[dict[str, Any]]:
        orders = {"restore": str(out / f"{source}.npz")}
        return of(
            implementation,
            workers,
            ("cnn", "float64"),
            label=f"from-{source}",
            orders=orders,
        )

    double, single, drops = (
        ("plain", "float64"),
        ("plain", "float32"),
        ("cnn", "float64"),
    )
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
                "clip_norm": None
                if name == "adamw"
                else 0.5,  # it enlarges the 1e-6 that PyTorch adds
            },
            "label": name,
        }
        for name in OPTIMIZERS
    ]

    def optimized(implementation: str, workers: int) -> list[dict[str, Any]]:
        return [
            made
            for more in optimizers
            for made in of(implementation, workers, double, **more)
        ]

    def parts(
        implementation: str, workers: int, accumulate: int
    ) -> list[dict[str, Any]]:
        """Micro-batches with statistics of their own."""
        more = {
            "sync": False,
            "changed": {"accumulate": accumulate},
            "label": str(accumulate),
        }
        return of(implementation, workers, ("unet", "float64"), **more)

    def changed(
        workers: int, precision: str, label: str, train: dict[str, Any], **more: Any
    ) -> Any:
        kind = "ddp" if workers > 1 else "torch-single"
        return of(
            kind, workers, ("plain", precision), changed=train, label=label, **more
        )

    with reserve.ports(12) as port:
        tensorflow = [
            *of("single", 1, *alone),
            *of("single", 1, double, **augmented),
            *of("single", 1, double, **optimizers[0]),
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
            *parts("torch-single", 1, 4),
            *parts("torch-virtual", 4, 1),
            *parts("torch-virtual", 2, 2),
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
                    *of(
                        "ddp",
                        2,
                        double,
                        label="changed rank",
                        orders={"changed_rank": 1},
                    ),
                    *of("ddp", 2, drops, label="again"),
                    *optimized("ddp", 2),
                    *parts("ddp", 2, 2),
                    *[
                        made
                        for kind in ("none", *ROUNDED)
                        for made in changed(
                            2,
                            "float32",
                            "once",
                            ONE_UPDATE,
                            orders={"steps": 1},
                            compression=kind,
                        )
                    ],
                ],
                2,
                port + 3,
                out,
            )
        )
        finish(
            start(of("ddp", 3, double, single, ("own", "float64")), 3, port + 6, out)
        )
        finish(start(of("ddp", 4, double, ("unet", "float64")), 4, port + 9, out))
    return out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("unet-single1-float64-sync", "unet-torch-single1-float64-sync"),
        ("unet-virtual2-float64-own", "unet-ddp2-float64-own"),
    ],
)
def test_engines_differ_in_moving_variances_alone(results, one, other):
    """PyTorch's hold the unbiased variance; each channel has 560 values or more in a slice."""
    (before, after, stored), (begun, again, ended) = (
        weights(results, one),
        weights(results, other),
    )
    assert all(np.array_equal(a, b) for a, b in zip(before, begun, strict=True))
    largest_change = max(
        np.abs(a - b).max() for a, b in zip(after, before, strict=True)
    )
    for index, (a, b) in enumerate(zip(after, again, strict=True)):
        if index in MOVING_VARIANCES:
            np.testing.assert_allclose(b, a, rtol=1 / 500)
            assert (b > a).all()
        else:
            assert np.abs(a - b).max() <= OTHER_ENGINE["float64"] * largest_change
    for measured in ("loss", "validation"):
        np.testing.assert_allclose(
            stored[measured], ended[measured], rtol=OTHER_ENGINE["float64"]
        )


def assert_same_bits(out: Path, one: str, other: str) -> None:
    (_, after, _), (_, again, _) = weights(out, one), weights(out, other)
    assert all(np.array_equal(a, b) for a, b in zip(after, again, strict=True))


EXACT = TOLERANCE["float64"]
EQUAL = [
    # any number of workers and one
    *[
        (
            f"plain-torch-single1-{kind}-sync",
            f"plain-ddp{count}-{kind}-sync",
            TOLERANCE[kind],
        )
        for count in (2, 3)
        for kind in ("float64", "float32")
    ],
    *[
        ("unet-torch-single1-float64-sync", f"unet-ddp{count}-float64-sync", EXACT)
        for count in (2, 4)
    ],
    *[
        ("plain-torch-single1-float64-sync", f"plain-{kind}-float64-sync", EXACT)
        for kind in ("ddp4", "torch-virtual14")
    ],
    # the same dropout wherever workers are computed
    *[
        (
            f"{task}-torch-virtual{count}-float64-sync",
            f"{task}-ddp{count}-float64-sync",
            EXACT,
        )
        for task, count in (("cnn", 2), ("own", 2), ("own", 3))
    ],
    # TensorFlow
    *[
        (
            f"{task}-single1-{kind}-sync",
            f"{task}-torch-single1-{kind}-sync",
            OTHER_ENGINE[kind],
        )
        for task, kind in (("plain", "float64"), ("plain", "float32"))
    ],
    # workers with their own statistics
    ("unet-torch-virtual2-float64-own", "unet-ddp2-float64-own", EXACT),
    # buffers of the first worker, and frozen parts, wherever workers are
    (
        "buffers-torch-virtual2-float64-own-buffers",
        "buffers-ddp2-float64-own-buffers",
        EXACT,
    ),
    # changed samples
    (
        "plain-torch-single1-float64-sync-changed",
        "plain-ddp2-float64-sync-changed",
        EXACT,
    ),
    (
        "plain-single1-float64-sync-changed",
        "plain-torch-single1-float64-sync-changed",
        OTHER_ENGINE["float64"],
    ),
    # optimizers, and clipped gradients
    *[
        (
            f"plain-torch-single1-float64-sync-{name}",
            f"plain-ddp2-float64-sync-{name}",
            EXACT,
        )
        for name in OPTIMIZERS
    ],
    (
        "plain-single1-float64-sync-nesterov",
        "plain-torch-single1-float64-sync-nesterov",
        CLIPPED,
    ),
    # mixed precision
    *[
        (f"plain-{one}-{kind}-sync", f"plain-{other}-{kind}-sync", MIXED)
        for one, other, kind in (
            ("torch-single1", "ddp2", "mixed_bfloat16"),
            ("torch-single1", "ddp2", "mixed_float16"),
            ("single1", "torch-single1", "mixed_bfloat16"),
        )
    ],
    # k micro-batches of n workers, and one of each of n * k workers
    *[
        ("unet-torch-single1-float64-own-4", f"unet-{other}", EXACT)
        for other in (
            "torch-virtual4-float64-own-1",
            "torch-virtual2-float64-own-2",
            "ddp2-float64-own-2",
        )
    ],
]


@pytest.mark.parametrize(("one", "other", "tolerance"), EQUAL)
def test_weights_are_equal(results, one, other, tolerance):
    assert_equal(results, one, other, tolerance)


def test_buckets_are_summed_each_by_itself_and_to_the_same_bits(results):
    assert_same_bits(
        results, "plain-ddp2-float32-sync", "plain-ddp2-float32-sync-64 KiB"
    )


def test_a_run_repeats_bit_for_bit_and_goes_on_bit_for_bit(results):
    assert_same_bits(results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-again")
    assert_same_bits(
        results, "cnn-ddp2-float64-sync", "cnn-ddp2-float64-sync-from-ddp2"
    )
    alone = "cnn-torch-single1-float64-sync"
    assert_same_bits(results, alone, f"{alone}-from-torch-single1")


def test_workers_agree_and_a_planted_divergence_does_not(results):
    for name, workers in (
        *((f"plain-ddp{workers}-float64-sync", workers) for workers in (2, 3, 4)),
        ("buffers-ddp2-float64-own-buffers", 2),
    ):
        _, _, stored = weights(results, name)
        assert len(stored["digests"]) == workers
        assert len(set(stored["digests"])) == 1
    _, _, changed = weights(results, "plain-ddp2-float64-sync-changed rank")
    assert len(set(changed["digests"])) == 2


@pytest.mark.parametrize("kind", list(ROUNDED))
def test_gradients_are_rounded_to_half_of_their_bytes(results, kind):
    before, rounded, stored = weights(results, f"plain-ddp2-float32-sync-{kind}-once")
    _, whole, _ = weights(results, "plain-ddp2-float32-sync-none-once")
    assert len(set(stored["digests"])) == 1
    change = max(np.abs(a - b).max() for a, b in zip(whole, before, strict=True))
    difference = max(np.abs(a - b).max() for a, b in zip(whole, rounded, strict=True))
    assert change > 1e-3
    assert ROUNDED[kind] / 16 * change < difference < 2 * ROUNDED[kind] * change
