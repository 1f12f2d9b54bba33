"""Same batches, same answer: one set of weights for all strategies and worker counts."""

import json
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
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.launch import reserve

pytestmark = pytest.mark.engine

TIMELINE = "timeline.json"
REAL = [("mirrored", 4), ("central-storage", 3), ("multiworker", 2), ("horovod", 2)]
VIRTUAL = [("virtual", 2), ("virtual", 14)]
COMPUTED = [("cnn", "float64"), ("cnn", "float32"), ("unet", "float64")]
"""Tasks and precisions of real workers."""
SAME = [(task, *workers, precision) for task, precision in COMPUTED for workers in REAL]
# With synchronised batch normalisation virtual workers compute as one worker, which proves nothing.
SAME += [("cnn", *workers, "float64") for workers in VIRTUAL]
ALONE = ("single", 1)
FLOAT32, FLOAT16 = 1, 19
"""TensorFlow's numbers of the types in which gradients are summed."""
ROUNDED = 2**-11
"""Relative rounding error of a gradient in float16: half the distance of adjacent numbers."""
WHOLE = {"batch_size": 34}
"""One step per epoch."""
ONE_UPDATE = WHOLE | {"optimizer": "sgd", "learning_rate": 0.1}
"""One update of plain SGD from equal weights: what it differs by is the rounding of one sum of gradients."""
CHANGED_FOR = [
    ("cnn", "mirrored", 4),
    ("unet", "mirrored", 4),
    ("unet", "multiworker", 2),
    ("cnn", "horovod", 2),
    ("cnn", "virtual", 4),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict[str, dict[str, str]]:
    return prepared_sets(tmp_path_factory.mktemp("cache"), ["cnn", "unet", "own"])


@pytest.fixture(scope="module")
def results(data, tmp_path_factory) -> Path:
    """The weights of all cases; each group of cases is computed once, in its own processes."""
    out = tmp_path_factory.mktemp("weights")

    def cases(implementation: str, workers: int) -> list[dict[str, Any]]:
        computed = COMPUTED[:1] if implementation == "virtual" else COMPUTED
        return [case(data, task, implementation, workers, p) for task, p in computed]

    def own(
        implementation: str, workers: int, *precisions: str
    ) -> list[dict[str, Any]]:
        return [
            case(data, "unet", implementation, workers, p, sync=False)
            for p in precisions
        ]

    def changed(implementation: str, workers: int) -> list[dict[str, Any]]:
        tasks = [
            task
            for task, *reader in CHANGED_FOR
            if (implementation, workers) in (tuple(reader), ALONE)
        ]
        return [
            case(data, task, implementation, workers, "float64", changed=CHANGED[task])
            for task in dict.fromkeys(tasks)
        ]

    def brought(implementation: str, workers: int) -> list[dict[str, Any]]:
        return [case(data, "own", implementation, workers, "float64", sync=False)]

    compiled = {
        kind: case(data, "unet", kind, 2, "float32", sync=False, xla=True)
        for kind in ("mirrored", "virtual", "multiworker", "horovod")
    }
    in_parts = case(
        data,
        "unet",
        "single",
        1,
        "float32",
        sync=False,
        xla=True,
        changed={"accumulate": 2},
    )

    def bucketed(implementation: str) -> list[dict[str, Any]]:
        kinds = [
            ("float32", "64 KiB"),
            ("mixed_float16", "64 KiB"),
            ("mixed_float16", "all"),
        ]
        return [
            case(data, "cnn", implementation, 2, p, bucket_size=size)
            for p, size in kinds
        ]

    compressed = [
        case(
            data,
            "cnn",
            "horovod",
            2,
            p,
            changed=ONE_UPDATE,
            orders={"steps": 1},
            compression=kind,
        )
        for kind in ("none", "fp16")
        for p in ("float32", "mixed_float16")
    ]

    with reserve.ports(12) as port:
        alone = [
            # TensorFlow confuses the collectives of different numbers of mirrored workers in one process.
            [
                *cases("single", 1),
                *changed("single", 1),
                *brought("single", 1),
                *own("mirrored", 2, "float64"),
                *brought("mirrored", 2),
            ],
            [*cases("mirrored", 4), *changed("mirrored", 4)],
            [one for kind in VIRTUAL for one in cases(*kind)]
            + [
                *changed("virtual", 4),
                *own("virtual", 2, "float64", "float32"),
                *brought("virtual", 4),
            ]
            + [*cases("central-storage", 3), *own("central-storage", 2, "float64")],
        ]
        first, second, third = (start(group, 1, port, out) for group in alone)
        finish(first + second + third)
        finish(
            start(
                cases("multiworker", 2)
                + changed("multiworker", 2)
                + brought("multiworker", 2)
                + bucketed("multiworker"),
                2,
                port,
                out,
            )
        )
        if horovod_built():
            finish(
                start(
                    cases("horovod", 2)
                    + changed("horovod", 2)
                    + brought("horovod", 2)
                    + bucketed("horovod")
                    + compressed,
                    2,
                    port + 3,
                    out,
                    timeline=out / TIMELINE,
                )
            )
        processes = start(
            [compiled["mirrored"], compiled["virtual"], in_parts], 1, port, out
        )
        finish(processes + start([compiled["multiworker"]], 2, port + 6, out))
        if horovod_built():
            finish(start([compiled["horovod"]], 2, port + 9, out))
    return out


@pytest.mark.parametrize(("task", "implementation", "workers", "precision"), SAME)
def test_weights_equal_those_of_one_worker(
    results, task, implementation, workers, precision
):
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    reference, name = (
        f"{task}-{kind}-{precision}-sync"
        for kind in ("single1", f"{implementation}{workers}")
    )
    assert_equal(results, reference, name, TOLERANCE[precision])


@pytest.mark.parametrize(
    ("implementation", "workers"),
    [("mirrored", 2), ("virtual", 4), ("multiworker", 2), ("horovod", 2)],
)
def test_a_task_with_all_of_its_own_is_trained_alike(results, implementation, workers):
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    names = (
        f"own-{kind}-float64-own" for kind in ("single1", f"{implementation}{workers}")
    )
    assert_equal(results, *names, TOLERANCE["float64"])
    _, _, stored = weights(results, f"own-{implementation}{workers}-float64-own")
    assert len(set(stored["digests"])) == 1


@pytest.mark.parametrize(("task", "implementation", "workers"), CHANGED_FOR)
def test_samples_are_changed_alike_for_every_strategy(
    results, task, implementation, workers
):
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    alone, name = (
        f"{task}-{kind}-float64-sync-changed"
        for kind in ("single1", f"{implementation}{workers}")
    )
    assert_equal(results, alone, name, TOLERANCE["float64"])
    _, plain, _ = weights(results, f"{task}-single1-float64-sync")
    _, other, _ = weights(results, alone)
    assert max(np.abs(a - b).max() for a, b in zip(plain, other, strict=True)) > 1e-4


@pytest.mark.parametrize("real", ["mirrored", "central-storage"])
def test_virtual_workers_with_their_own_statistics_equal_real_ones(results, real):
    names = (f"unet-{kind}2-float64-own" for kind in (real, "virtual"))
    assert_equal(results, *names, TOLERANCE["float64"])


@pytest.mark.parametrize(
    "implementation", ["mirrored", "virtual", "multiworker", "horovod"]
)
def test_xla_computes_the_same_to_rounding(results, implementation):
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    assert_equal(
        results,
        "unet-virtual2-float32-own",
        f"unet-{implementation}2-float32-own-xla",
        1e-3,
    )


def test_xla_computes_micro_batches_as_it_does_workers(results):
    assert_equal(
        results,
        "unet-virtual2-float32-own",
        "unet-single1-float32-own-xla-changed",
        1e-3,
    )


def test_statistics_per_worker_are_not_those_of_the_global_batch(results):
    _, own, _ = weights(results, "unet-virtual2-float64-own")
    _, shared, _ = weights(results, "unet-single1-float64-sync")
    assert max(np.abs(a - b).max() for a, b in zip(own, shared, strict=True)) > 1e-3


@pytest.mark.parametrize(("implementation", "workers"), REAL)
def test_the_copies_of_a_run_agree_bit_for_bit(results, implementation, workers):
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    for task, precision in COMPUTED:
        _, _, stored = weights(
            results, f"{task}-{implementation}{workers}-{precision}-sync"
        )
        assert len(stored["digests"]) == workers
        assert len(set(stored["digests"])) == 1


def loaded(out: Path, implementation: str, *rest: str) -> Any:
    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    return weights(out, "-".join([f"cnn-{implementation}2", *rest]))


@pytest.mark.parametrize("implementation", ["multiworker", "horovod"])
def test_buckets_are_summed_each_by_itself_and_to_the_same_bits(
    results, implementation
):
    _, one, alone = loaded(results, implementation, "float32", "sync")
    _, three, stored = loaded(results, implementation, "float32", "sync", "64 KiB")
    assert (alone["exchange"].tolist(), stored["exchange"].tolist()) == ([1, 1], [3, 3])
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    assert len(set(stored["digests"])) == 1
    assert_equal(
        results,
        "cnn-single1-float32-sync",
        f"cnn-{implementation}2-float32-sync-64 KiB",
        1e-4,
    )


@pytest.mark.parametrize("implementation", ["multiworker", "horovod"])
def test_float16_adds_no_collective_to_those_of_the_gradients(results, implementation):
    before, one, alone = loaded(results, implementation, "mixed_float16", "sync", "all")
    _, three, stored = loaded(
        results, implementation, "mixed_float16", "sync", "64 KiB"
    )
    assert (alone["exchange"].tolist(), stored["exchange"].tolist()) == ([1, 1], [3, 3])
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    assert max(np.abs(a - b).max() for a, b in zip(one, before, strict=True)) > 1e-3


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_gradients_are_summed_in_half_of_the_bytes(results, precision):
    before, rounded, stored = loaded(
        results, "horovod", precision, "sync", "fp16", "changed"
    )
    _, whole, alone = loaded(results, "horovod", precision, "sync", "none", "changed")
    assert stored["types"].tolist() == [FLOAT16]
    assert alone["types"].tolist() == [FLOAT32]
    change = max(np.abs(a - b).max() for a, b in zip(whole, before, strict=True))
    difference = max(np.abs(a - b).max() for a, b in zip(whole, rounded, strict=True))
    assert change > 1e-3
    assert 0 < difference < 2 * ROUNDED * change, (
        "each worker's part is rounded, and their sum"
    )
    assert len(set(stored["digests"])) == 1


def test_horovod_fuses_no_bucket_with_another(results):
    if not horovod_built():
        pytest.skip("Horovod is not built")
    events = json.loads((results / TIMELINE).read_text())
    shapes, begun, fused = {}, [], []
    for event in events:
        if event["ph"] == "E" and "shape" in event.get("args", {}):
            shapes[event["pid"]] = event["args"]["shape"]
        if event["ph"] == "B" and event["name"] == "GLOO_ALLREDUCE":
            begun.append(event["pid"])
        elif begun:  # parts of one sum begin together
            fused.append(tuple(begun))
            begun = []
    groups = {tuple(shapes[pid] for pid in group) for group in fused}
    of_the_cnn = {
        group
        for group in groups
        if {"[3, 3, 1, 32]", "[3, 3, 32, 64]", "[128, 10]"} & set(group)
    }
    buckets = [
        ("[3, 3, 1, 32]", "[32]"),
        ("[3, 3, 32, 64]", "[64]"),
        ("[256, 128]", "[128]", "[128, 10]", "[10]"),
    ]
    assert of_the_cnn == {*buckets, sum(buckets, ())}
