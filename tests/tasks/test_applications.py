import numpy as np
import pytest

from scalestudy.config.catalog import applications
from scalestudy.config.settings import TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

SMALL = DataInfo("classes", (32, 32, 3), 5)
SCRATCH = {"weights": "none"}


def made(task, data=SMALL, **train):
    return load_task(
        task, data, task_defaults(task).complete_train(TrainSettings(**train))
    )


@pytest.fixture(scope="module")
def resnet(framework):
    return made("resnet50", DataInfo("classes", (300, 300, 3), 5), **SCRATCH)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty Keras folder, without a network."""
    from urllib.error import URLError

    from keras.src.backend import config
    from keras.src.utils import file_utils

    def unreachable(url, *_, **__):
        raise URLError(f"no network for {url}")

    monkeypatch.setattr(config, "keras_home", lambda: str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setattr(file_utils, "urlretrieve", unreachable)
    return tmp_path


def stored_weights(model, file):
    """Write weights in the format of Keras's own files."""
    import h5py
    from keras.src.legacy.saving import legacy_h5_format

    file.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(file, "w") as stream:
        legacy_h5_format.save_weights_to_hdf5_group(stream, model)
    return file


def test_the_names_known_are_those_that_keras_has(framework):
    import keras

    models = {name for name in dir(keras.applications) if name[0].isupper()}
    assert set(applications()) == models


def test_resnet50_is_the_published_network(resnet):
    model = resnet.model
    # 23,587,712 without the top, plus the two layers after it (2048 -> 1016 -> 5).
    assert model.count_params() == 23_587_712 + 2048 * 1016 + 1016 + 1016 * 5 + 5
    assert [layer.name for layer in model.layers[:2]] == [
        "input_layer",
        "backbone",
    ] or model.layers[1].name == "backbone"
    hidden, _, last = model.layers[-3:]
    assert (hidden.units, hidden.activation.__name__, last.activation.__name__) == (
        1016,
        "relu",
        "softmax",
    )
    train = task_defaults("resnet50").complete_train(TrainSettings())
    assert (train.epochs, train.batch_size, train.optimizer, train.learning_rate) == (
        15,
        32,
        "adam",
        1e-4,
    )
    assert (train.weights, train.input_scaling) == ("imagenet", "unit")
    assert list(resnet.metrics) == ["accuracy"]
    assert resnet.pretrained == ("backbone",)


@pytest.mark.parametrize("name", ["ResNet50", "MobileNetV2"])
def test_images_come_to_the_backbone_as_its_weights_were_trained_on_them(
    framework, name
):
    import keras

    from scalestudy.tasks.applications import prepared_input

    inputs = keras.Input((8, 8, 3))
    train = task_defaults(f"keras:{name}").complete_train(TrainSettings())
    model = keras.Model(inputs, prepared_input(inputs, name, train))
    images = np.random.default_rng(0).random((2, 8, 8, 3)).astype("float32")
    function = __import__(
        getattr(keras.applications, name).__module__, fromlist=["x"]
    ).preprocess_input
    assert np.allclose(model(images), function(images * 255), atol=1e-3)


def test_the_published_input_stays_between_0_and_1_and_grey_becomes_three_channels(
    framework,
):
    import keras

    from scalestudy.tasks.applications import prepared_input

    inputs = keras.Input((8, 8, 1))
    train = task_defaults("resnet50").complete_train(TrainSettings())
    outputs = keras.Model(inputs, prepared_input(inputs, "ResNet50", train))(
        np.full((1, 8, 8, 1), 0.25)
    )
    assert (outputs.shape, set(np.unique(outputs))) == ((1, 8, 8, 3), {0.25})


def test_weights_that_are_not_there_are_asked_for_by_name_and_place(home):
    file = home / "models" / "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5"
    file.parent.mkdir()
    file.write_bytes(
        b"<html>Please log in to the proxy</html>"
    )  # as after a broken download
    with pytest.raises(UserError) as refused:
        made("resnet50")
    assert str(file) in refused.value.expected
    assert "no network" in refused.value.received
    for part in (file.name, "data prepare", '"none"', '"PATH"'):
        assert part in refused.value.action


def test_keras_own_weights_are_taken_from_where_keras_keeps_them(
    home, resnet, monkeypatch
):
    import hashlib

    from keras.src.applications import resnet as module

    backbone = resnet.model.get_layer("backbone")
    file = stored_weights(
        backbone,
        home / "models" / "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5",
    )
    digest = hashlib.md5(file.read_bytes()).hexdigest()
    monkeypatch.setitem(module.WEIGHTS_HASHES, "resnet50", ("", digest))
    found = made("resnet50").model.get_layer("backbone").get_weights()
    assert all(map(np.array_equal, found, backbone.get_weights()))


def test_a_file_of_weights_may_lie_anywhere_and_must_fit(framework, tmp_path):
    first = made("keras:MobileNetV2", **SCRATCH).model.get_layer("backbone")
    file = stored_weights(first, tmp_path / "own.h5")
    again = made("keras:MobileNetV2", weights=str(file)).model.get_layer("backbone")
    assert all(map(np.array_equal, first.get_weights(), again.get_weights()))
    with pytest.raises(UserError, match="weights of VGG16 without its top"):
        made("keras:VGG16", weights=str(file))
    with pytest.raises(UserError, match="which is no file"):
        made("keras:VGG16", weights=str(tmp_path / "none.h5"))


def test_what_a_model_cannot_take_is_refused(framework):
    with pytest.raises(UserError, match="larger image_size"):
        made("keras:ResNet50", DataInfo("classes", (16, 16, 3), 5), **SCRATCH)
    with pytest.raises(UserError, match="images of 1 or 3 channels"):
        made("keras:ResNet50", DataInfo("classes", (32, 32, 4), 5), **SCRATCH)
    with pytest.raises(UserError, match="Did you mean MobileNetV2"):
        made("keras:MobilNetV2", **SCRATCH)


@pytest.mark.parametrize("train", [{"weights": "imagenet"}, {"frozen_epochs": 1}])
def test_a_task_without_such_weights_refuses_what_is_asked_of_them(framework, train):
    with pytest.raises(UserError, match=r"weights|pretrained layers"):
        made("cnn", DataInfo("classes", (8, 8, 1), 10), **train)
