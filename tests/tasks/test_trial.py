"""The trial of a task on two samples before the start: each fault by name, place and remedy."""

import pytest

from data_settings import data_of
from few_digits import few_digits
from paths import OWN_TASK
from scalestudy.config.settings import TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.data.preparation import prepare
from scalestudy.engines.tensorflow.engine import ENGINE
from scalestudy.tasks.file import import_file
from scalestudy.tasks.load import load_task, task_of
from scalestudy.tasks.task import DataInfo
from scalestudy.tasks.trial import (
    forward,
    note_on_weights,
    notes_on,
    refuse_weights,
    try_task,
)
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

GOOD = {
    "imports": "import keras\nimport numpy as np\nfrom keras import layers, ops",
    "last": "layers.Dense(10, activation='softmax')",
    "rest": "",
    "loss": "loss = 'sparse_categorical_crossentropy'",
    "metrics": "metrics = ['accuracy']",
}
FORM = """{imports}
{rest}
def model(data):
    inputs = keras.Input(data.input_shape)
    x = layers.Flatten()(inputs)
    return keras.Model(inputs, {last}(x))

{loss}
{metrics}
"""
MEAN = "def loss(targets, outputs):\n    return ops.mean(keras.losses.sparse_categorical_crossentropy({}))"
LATEST = """
class Latest(keras.Metric):
    better = "higher"
    def __init__(self):
        super().__init__(name="latest")
        self.value = self.add_variable((), "zeros", name="value")
    def update_state(self, y_true, y_pred, sample_weight=None):
        self.value.assign(ops.max(y_pred) + 1)
    def result(self):
        return self.value
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return prepare(data_of(few_digits(cache, 20), cache=cache))


@pytest.fixture(scope="module")
def custom(tmp_path_factory):
    """Prepare the data of a task file that defines everything itself."""
    return prepare(
        data_of(OWN_TASK, read=OWN_TASK, cache=tmp_path_factory.mktemp("custom"))
    )


def tried(folder, prepared, **parts):
    """Try a task file with some parts replaced; return the notes."""

    file = folder / "my_task.py"
    file.write_text(FORM.format(**GOOD | parts))
    module = import_file(file)
    task = task_of(
        module,
        DataInfo.of(prepared),
        task_defaults(str(file)).complete_train(TrainSettings()),
    )
    refuse_weights(task, str(file), None)
    outputs = forward(task, prepared, str(file))
    notes = notes_on(module, task, prepared, outputs)
    try_task(ENGINE, task, prepared, outputs, str(file))
    return notes


def test_a_good_task_is_left_in_peace(tmp_path, digits):
    assert tried(tmp_path, digits) == []


FAULTS = {
    "too few units": (
        {"last": "layers.Dense(5, activation='softmax')"},
        r"5 units|received label value",
    ),
    "binary loss for ten classes": (
        {
            "last": "layers.Dense(1, activation='sigmoid')",
            "loss": "loss = 'binary_crossentropy'",
            "metrics": "metrics = [keras.metrics.BinaryAccuracy()]",
        },
        "targets from 0 to 9",
    ),
    "softmax of one unit": (
        {
            "last": "layers.Dense(1, activation='softmax')",
            "loss": "loss = 'binary_crossentropy'",
            "metrics": "metrics = [keras.metrics.BinaryAccuracy()]",
        },
        "always 1",
    ),
    "accuracy of one unit": (
        {"last": "layers.Dense(1)", "loss": "loss = 'mse'"},
        "most likely class is always 0",
    ),
    "categorical loss for numbers": (
        {"loss": "loss = 'categorical_crossentropy'"},
        r"with \[B\] of int32",
    ),
    "a mean over samples": (
        {"loss": MEAN.format("targets, outputs")},
        "a mean or a sum over samples",
    ),
    "a loss of others in the batch": (
        {
            "loss": "def loss(targets, outputs):\n"
            "    return ops.mean(outputs - ops.mean(outputs, 0), -1) ** 2 + ops.max(outputs)"
        },
        "each by itself",
    ),
    "a loss that is not finite": (
        {
            "loss": "def loss(targets, outputs):\n    return ops.log(outputs[:, 0] * 0 - 1)"
        },
        "nan, nan for the first",
    ),
    "NumPy in the loss": (
        {
            "loss": "def loss(targets, outputs):\n    return np.square(np.asarray(outputs)).sum(-1)"
        },
        r"my_task\.py, line \d+, in loss.*keras\.ops",
    ),
    "more memory than any machine has": (
        {"loss": "def loss(targets, outputs):\n    return np.empty(1 << 50)"},
        "Unable to allocate.*smaller",
    ),
    "more memory than a device has": (
        {
            "loss": "def loss(targets, outputs):\n    raise RuntimeError('CUDA out of memory. Tried 2 GiB.')"
        },
        "CUDA out of memory.*batch_size.*accumulate.*mixed_bfloat16",
    ),
    "an error in the loss": (
        {
            "loss": "def loss(targets, outputs):\n    return ops.matmul(outputs, outputs)"
        },
        r"my_task\.py, line \d+, in loss\), with \[B\] of int32, \[B, 10\] of float32",
    ),
    "a layer that nothing depends on": (
        {
            "last": "(lambda x: layers.Dense(10, activation='softmax')(x) + 0 * ops.cast("
            "ops.argmax(layers.Dense(3, name='unused')(x), -1), 'float32')[:, None])"
        },
        "none for unused/kernel, unused/bias",
    ),
    "a variable outside of the model": (
        {
            "rest": "far = keras.Variable(1.0, name='far')",
            "loss": "def loss(targets, outputs):\n"
            "    return far * keras.losses.sparse_categorical_crossentropy(targets, outputs)",
        },
        "far.* outside of them",
    ),
    "a metric that is no sum": (
        {"rest": LATEST, "metrics": "metrics = [Latest()]"},
        "'latest'.*two samples",
    ),
    "a metric over the batch": (
        {
            "metrics": "def off(targets, outputs):\n    return ops.mean(outputs)\nmetrics = [off]\n"
            "better = {'off': 'lower'}"
        },
        "per sample",
    ),
    "a hook with other arguments": (
        {"rest": "def training_losses(model, inputs):\n    return inputs"},
        "cannot be called so",
    ),
    "a loss by another name": ({"loss": "criterion = 'mse'"}, "`criterion`"),
    "metrics by another name": ({"metrics": "metrcs = ['mae']"}, "`metrcs`"),
    "nothing to train": (
        {"last": "layers.Dense(10, 'softmax', trainable=False)"},
        "weights to train",
    ),
    "weights that are not finite": (
        {
            "last": "layers.Dense(10, 'softmax', bias_initializer=keras.initializers.Constant(float('nan')))"
        },
        "in 1 of the 2 arrays",
    ),
    "no model": ({"loss": "model = None"}, "NoneType"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_before_the_start(tmp_path, digits, fault):
    parts, said = FAULTS[fault]
    with pytest.raises(UserError) as caught:
        tried(tmp_path, digits, **parts)
    assert caught.match(f"(?s){said}")


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ({"last": "layers.Dense(10, kernel_initializer='ones')"}, "no probabilities"),
        (
            {
                "loss": "loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
            },
            "has from_logits=True",
        ),
        ({"rest": "callback = []"}, "did you mean callbacks?"),
    ],
)
def test_what_is_likely_wrong_is_noted(tmp_path, digits, parts, note):
    assert [said for said in tried(tmp_path, digits, **parts) if note in said]


def test_an_argument_too_many_of_the_model_is_told(tmp_path, digits):
    (tmp_path / "t.py").write_text(
        "def model(data, train, more):\n    pass\nloss = 'mse'\nmetrics = ['mae']\n"
    )
    with pytest.raises(UserError, match=r"`model`.*a function \(data\).*'train'"):
        load_task(str(tmp_path / "t.py"), DataInfo.of(digits))


def test_a_task_with_all_of_its_own_passes_and_its_sums_are_of_its_outputs(custom):
    task = load_task(str(OWN_TASK), DataInfo.of(custom))
    outputs = forward(task, custom, str(OWN_TASK))
    try_task(ENGINE, task, custom, outputs, str(OWN_TASK))
    assert {name: tuple(value.shape) for name, value in outputs.items()} == {
        "state": (2, 2),
        "stay": (2, 1),
    }
    assert list(task.metrics) == ["state_accuracy", "stay_error"]


def test_a_loss_for_each_output_is_refused(tmp_path, custom):
    (tmp_path / "t.py").write_text(
        OWN_TASK.read_text() + "\nloss = {'state': 'mse', 'stay': 'mse'}\n"
    )
    with pytest.raises(UserError, match=r"def loss\(targets, outputs\)"):
        load_task(str(tmp_path / "t.py"), DataInfo.of(custom))


@pytest.mark.parametrize(
    ("sets", "noted"),
    [("", 0), ("keras.utils.set_random_seed(7)", 1)],
    ids=["no", "yes"],
)
def test_initial_weights_that_no_seed_changes_are_named(tmp_path, digits, sets, noted):
    file = tmp_path / "seeded_task.py"
    file.write_text(FORM.format(**GOOD | {"imports": f"{GOOD['imports']}\n{sets}"}))
    notes = note_on_weights(
        lambda: load_task(str(file), DataInfo.of(digits)).model, str(file)
    )
    assert [str(file) in note for note in notes] == [True] * noted
