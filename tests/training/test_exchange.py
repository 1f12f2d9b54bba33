"""Finding a step's exchange in its graph, and overflow in float16."""

from types import SimpleNamespace

import numpy as np
import pytest

from exchange import Exchange, in_graph

pytestmark = pytest.mark.engine


def node(name: str, op: str, *inputs: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, op=op, input=inputs, device="")


BACK = [node("last", "MatMul"), node("first", "MatMul", "last")]
SUMS = ("CollectiveReduceV2", "HorovodGroupedAllreduce")


@pytest.mark.parametrize("op", SUMS)
def test_a_sum_that_waits_for_its_own_gradients_alone_is_early(op):
    second = node("b", op, "first", "^a")
    assert in_graph([*BACK, node("a", op, "last"), second]) == Exchange(2, 2)


@pytest.mark.parametrize(
    "held",
    [
        [node("a", "CollectiveReduceV2", "last", "^first")],
        [
            node("all", "IdentityN", "last", "first"),
            node("a", "CollectiveReduceV2", "all:0"),
        ],
        [
            node("none", "NoOp", "^first"),
            node("a", "CollectiveReduceV2", "last", "^none"),
        ],
    ],
)
def test_a_sum_that_is_held_back_until_the_first_layers_gradient_is_not(held):
    assert in_graph([*BACK, *held, node("b", "CollectiveReduceV2", "first")]).early == 1


def test_an_overflow_of_one_worker_leaves_the_step_out_on_both(framework, two_devices):
    from scalestudy.engines.tensorflow.optimizers import LossScale

    tf, replicas = framework, two_devices.replicas
    with replicas.scope():
        weight = tf.Variable(1.0)
        scale = LossScale()

    @tf.function
    def step(parts):
        def gradient(part):
            return [part, tf.constant(0.5)], part

        def update(sums):
            weight.assign_sub(sums[0])

        return replicas.step(gradient, update, parts, scale, buckets=((1,), (0,)))

    before = float(scale.value.numpy())
    for own in (
        (np.inf, 1.0),
        (1.0, np.nan),
        (3e38, 3e38),
    ):  # the last: finite, but its sum is not
        step([tf.constant(value, tf.float32) for value in own])
        assert [copy.tolist() for copy in replicas.copies(weight)] == [1.0, 1.0]
    assert float(scale.value.numpy()) == before / 8
    step([tf.constant(0.25), tf.constant(0.5)])
    assert [copy.tolist() for copy in replicas.copies(weight)] == [0.25, 0.25]
    traced = step.get_concrete_function([tf.TensorSpec([])] * 2).graph.as_graph_def()
    operations = [each.op for each in traced.node]
    assert (
        operations.count("CollectiveReduceV2") == 2 * 2
    )  # one per bucket and device, none for the flag


@pytest.mark.parametrize(
    "train", [{}, {"precision": "mixed_float16"}], ids=["float32", "mixed_float16"]
)
def test_sums_of_the_last_layers_do_not_wait_for_the_first(session, train):
    from exchange import exchange

    one = session(
        "cnn", "mirrored", 2, epochs=1, launch={"bucket_size": "64 KiB"}, **train
    )
    list(one.epoch_records())
    assert exchange(one.trainer._train[0]) == Exchange(collectives=3, early=3)
