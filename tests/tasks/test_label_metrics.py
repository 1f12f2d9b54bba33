import keras
import numpy as np
import pytest

from scalestudy.data.images.tiles import cut, cut_mask, tiles_of
from scalestudy.tasks.label_metrics import IoU

pytestmark = pytest.mark.engine


def test_iou_is_that_of_the_published_study():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, (4, 8, 8)).astype("uint8")
    predicted = rng.random((4, 8, 8, 1)).astype("float32")
    metric = IoU()
    metric.update_state(true, predicted)
    p = predicted[..., 0] >= 0.5
    expected = ((true * p).sum() + 1) / (true.sum() + p.sum() - (true * p).sum() + 1)
    assert float(metric.result()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_no_pixel_is_counted_in_int32_which_gpus_leave_to_the_host(classes):
    """Nor by the loss. Only an argmax returns int32 on the GPU; other operations use host memory."""
    import tensorflow as tf

    from scalestudy.tasks.base import DataInfo
    from scalestudy.tasks.unet import loss

    metric, losses = IoU(classes, ignore=255), loss(DataInfo("masks", (8, 8, 1), classes, 255))
    start = [tf.constant(variable.numpy()) for variable in metric.variables]

    @tf.function
    def computed(true, outputs):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            total = tf.reduce_sum(losses(true, outputs))
        return metric.stateless_update_state(start, true, outputs), tape.gradient(total, outputs)

    true = tf.zeros((2, 8, 8), tf.uint8)
    outputs = tf.fill((2, 8, 8, 1 if classes == 2 else classes), 0.5)
    graph = computed.get_concrete_function(true, outputs).graph
    pixels = [
        (operation.type, tensor.shape)
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.dtype == tf.int32 and (tensor.shape.rank or 0) > 1
    ]
    assert {kind for kind, _ in pixels} <= ({"ArgMax"} if classes > 2 else set())


def test_ties_are_the_first_classs():
    metric = IoU(3)
    metric.update_state(np.array([[[0, 1, 0]]], "uint8"), np.full((1, 1, 3, 3), 1 / 3, "float32"))
    assert np.asarray(metric.predicted).tolist() == [3.0, 0.0, 0.0]


def test_it_counts_beyond_what_float32_can():
    metric = IoU()
    for variable in metric.variables:
        variable.assign(np.full(variable.shape, 2.0**24))
    metric.update_state(np.ones((1, 1, 1), "uint8"), np.ones((1, 1, 1, 1), "float32"))
    assert float(metric.intersection[0]) == 2.0**24 + 1


def test_iou_over_tiles_is_that_over_whole_images_of_a_model_that_sees_no_further_than_their_margin():
    keras.utils.set_random_seed(0)
    draw = np.random.default_rng(2)
    image = draw.random((41, 67, 1)).astype("float32")
    mask = draw.integers(0, 2, (41, 67)).astype("uint8")
    inputs = keras.Input((None, None, 1))
    seen = keras.layers.Conv2D(2, 3, padding="same", activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")(seen))
    whole, tiled = IoU(), IoU(ignore=255)
    whole.update_state(mask[None], model(image[None]))
    for size, overlap, equal in (((16, 16), 4, True), ((21, 17), 0, False)):
        tiled.reset_state()
        tiles = tiles_of((41, 67), size, overlap)
        parts = np.stack([cut(image, tile, size) for tile in tiles])
        targets = np.stack([cut_mask(mask, tile, size) for tile in tiles])
        tiled.update_state(targets, model(parts))
        assert float(np.sum(tiled.true)) == float(np.sum(whole.true))
        assert (float(tiled.result()) == float(whole.result())) is equal
