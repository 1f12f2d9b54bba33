"""The layout that TensorFlow's optimizer chooses for a step on a GPU; a description replaces the GPU."""

import numpy as np
import pytest

from scalestudy.data.samples import Slice

pytestmark = pytest.mark.engine
GPU, CPU = (f"/job:localhost/replica:0/task:0/device:{name}:0" for name in ("GPU", "CPU"))


def transposes(concrete, capability: str) -> int:
    """Count the transposes in a graph of convolutions, optimised for a GPU of this capability."""
    from tensorflow.core.protobuf import config_pb2, device_properties_pb2
    from tensorflow.python.framework import meta_graph
    from tensorflow.python.grappler import cluster, tf_optimizer

    definition = concrete.graph.as_graph_def()
    for node in definition.node:
        node.device = "" if node.op == "Placeholder" else GPU
    graph = meta_graph.create_meta_graph_def(graph_def=definition, graph=concrete.graph)
    ends = [output.name for output in concrete.outputs]
    ends += [node.name for node in definition.node if node.op.startswith("Assign")]
    graph.collection_def["train_op"].node_list.value.extend(ends)
    properties = device_properties_pb2.DeviceProperties
    environment = {"architecture": capability, "cuda": "12050", "cudnn": "9003"}
    devices = [
        device_properties_pb2.NamedDevice(
            name=GPU,
            properties=properties(
                type="GPU",
                vendor="NVidia",
                frequency=1000,
                num_cores=60,
                memory_size=10**10,
                environment=environment,
            ),
        ),
        device_properties_pb2.NamedDevice(
            name=CPU, properties=properties(type="CPU", frequency=1000, num_cores=4)
        ),
    ]
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    optimised = tf_optimizer.OptimizeGraph(config, graph, cluster=cluster.Cluster(devices=devices))
    return sum(node.op == "Transpose" for node in optimised.node)


def unet():
    from scalestudy.tasks.unet import unet

    return unet((32, 32, 1), 2)


def resnet50():
    import keras

    return keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10)


def gradient(framework, made, rows, precision):
    """Return the graph of a model's gradient for batches of `rows` rows; None means any number."""
    import keras

    from scalestudy.engines.keras.adapt import adapt
    from scalestudy.engines.tensorflow.tensorflow_engine import begin
    from scalestudy.engines.tensorflow.tensorflow_layers import replace_layer

    tf = framework
    begin(0, precision)
    try:
        model = made()
        adapt(model, replace_layer, seed=0, sync_batch_norm=False)
    finally:
        begin(0, "float32")
    variables = [variable.value for variable in model.trainable_variables]

    def computed(images):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(tf.cast(model(images, training=True), tf.float32))
        return tape.gradient(total, variables)

    keras.backend.clear_session()
    specs = tf.TensorSpec((rows, *model.input_shape[1:]), tf.float32)
    return tf.function(computed, autograph=False).get_concrete_function(specs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "precision", "most"),
    [
        (unet, "float32", 4),
        (unet, "tf32", 4),
        (unet, "mixed_float16", 4),
        (unet, "mixed_bfloat16", 4),
        (resnet50, "float32", 2),  # one for the images, one for the gradient from the pooling layer
        (resnet50, "mixed_float16", 0),  # in 16 bits, Tensor Cores use channels last
        (resnet50, "mixed_bfloat16", 2),  # not computed by Tensor Cores of 7.0
    ],
)
def test_of_batches_of_a_known_size_no_transposes_stay_between_the_layers(
    framework, monkeypatch, made, precision, most
):
    """An unknown batch size costs float32 one transpose on each side of every batch normalisation."""
    from scalestudy.engines.tensorflow import tensorflow_layers

    monkeypatch.setattr(
        tensorflow_layers, "gpu", lambda device: GPU
    )  # GPUs normalise 16-bit batches directly
    known = gradient(framework, made, 8, precision)
    for capability in ("7.0", "8.0", "9.0"):
        assert transposes(known, capability) <= most
    if (made, precision) == (unet, "float32"):
        assert transposes(gradient(framework, made, None, precision), "8.0") > most


def test_on_gpus_each_size_of_a_batch_has_its_graph_and_on_cpus_one_serves_all(framework, monkeypatch):
    from scalestudy.engines.tensorflow import staging

    def rows_known(gpu):
        monkeypatch.setattr(staging, "gpu", lambda device: gpu)
        known = []
        compiled = staging.Compiled(lambda call: known.append(call[0].inputs.shape[1]) or call[0].inputs)
        for rows in (4, 3, 4):
            compiled([Slice(np.zeros((1, rows, 2), np.float32), np.zeros((1, rows)), 0, rows, rows)])
        return known

    assert rows_known("CPU:0") == [4, 3]
    assert rows_known(None) == [None]
