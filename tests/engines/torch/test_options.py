"""Exchange options under PyTorch: micro-batches, 16-bit sums, and local SGD."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equality import TOLERANCE, assert_equal, case, finish, prepared_sets, start, weights
from scalestudy.launch import reserve

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

WHOLE = {"batch_size": 34}
"""One step per epoch."""
LOCAL = {"local_steps": 3, "steps_per_call": 1}
ROUNDED = {"fp16": 2**-11, "bf16": 2**-8}
"""Relative rounding error of one gradient."""
ONE_UPDATE = WHOLE | {"optimizer": "sgd", "learning_rate": 0.1}
"""One update of plain SGD from equal weights: what it differs by is the rounding of one sum of gradients."""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The weights of all cases, computed by one process and by two."""
    out = tmp_path_factory.mktemp("weights")
    data = prepared_sets(tmp_path_factory.mktemp("cache"), ["plain", "unet"])

    def parts(implementation: str, workers: int, accumulate: int) -> dict[str, Any]:
        changed, label = {"accumulate": accumulate}, str(accumulate)
        return case(
            data, "unet", implementation, workers, "float64", sync=False, changed=changed, label=label
        )

    def cnn(workers: int, precision: str, label: str, changed: dict[str, Any], **more: Any) -> dict[str, Any]:
        kind = "ddp" if workers > 1 else "torch-single"
        return case(data, "plain", kind, workers, precision, changed=changed, label=label, **more)

    with reserve.ports(3) as port:
        one = [
            parts("torch-single", 1, 4),
            parts("torch-virtual", 4, 1),
            parts("torch-virtual", 2, 2),
            cnn(1, "float64", "whole", WHOLE),
        ]
        two = [
            parts("ddp", 2, 2),
            cnn(2, "float64", "whole", WHOLE | {"local_steps": 3}),
            cnn(2, "float32", "local", LOCAL),
            cnn(2, "float32", "left", LOCAL, orders={"leave": 6}),
            cnn(2, "float32", "summed", {}),
            *[
                cnn(2, "float32", "once", ONE_UPDATE, orders={"steps": 1}, compression=kind)
                for kind in ("none", *ROUNDED)
            ],
        ]
        finish(start(one, 1, port, out) + start(two, 2, port, out))
    return out


@pytest.mark.parametrize(
    "other",
    ["torch-virtual4-float64-own-1", "torch-virtual2-float64-own-2", "ddp2-float64-own-2"],
)
def test_k_micro_batches_of_n_workers_are_one_of_each_of_n_k_workers(results, other):
    assert_equal(results, "unet-torch-single1-float64-own-4", f"unet-{other}", TOLERANCE["float64"])


@pytest.mark.parametrize("kind", list(ROUNDED))
def test_gradients_are_summed_in_half_of_the_bytes(results, kind):
    before, rounded, stored = weights(results, f"plain-ddp2-float32-sync-{kind}-once")
    _, whole, plain = weights(results, "plain-ddp2-float32-sync-none-once")
    assert 2 * stored["bytes"] == plain["bytes"]
    assert len(set(stored["digests"])) == 1
    change = max(np.abs(a - b).max() for a, b in zip(whole, before, strict=True))
    difference = max(np.abs(a - b).max() for a, b in zip(whole, rounded, strict=True))
    assert change > 1e-3
    assert ROUNDED[kind] / 16 * change < difference < 2 * ROUNDED[kind] * change


def test_weights_averaged_after_each_step_are_those_of_summed_gradients(results):
    names = (f"plain-{name}-float64-sync-whole" for name in ("torch-single1", "ddp2"))
    assert_equal(results, *names, TOLERANCE["float64"])


def test_local_steps_go_on_within_an_epoch_from_each_workers_own_weights(results):
    (before, local, stored), (_, resumed, left), (_, summed, _) = (
        weights(results, f"plain-ddp2-float32-sync-{label}") for label in ("local", "left", "summed")
    )
    assert all(np.array_equal(a, b) for a, b in zip(local, resumed, strict=True))
    for run in (stored, left):
        assert len(run["digests"]) == 2 and len(set(run["digests"])) == 1
    assert len(set(left["apart"])) == 2, "workers have other weights each where the run is left"
    change = max(np.abs(a - b).max() for a, b in zip(summed, before, strict=True))
    assert max(np.abs(a - b).max() for a, b in zip(local, summed, strict=True)) > 1e-2 * change
