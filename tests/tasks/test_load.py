from pathlib import Path

import numpy as np
import pytest

from scalestudy.config.settings import TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.tasks.load import import_file, load_task, module_of, refuse_incomplete
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

DATA = DataInfo("classes", (8, 8, 1), 10)
COMPLETE = """
import keras
data = "digits"
def model(data):
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(data.classes, activation="softmax")])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def write(tmp_path):
    def make(text: str) -> str:
        file = tmp_path / "my_task.py"
        file.write_text(text)
        return str(file)

    return make


def test_a_file_with_model_loss_and_metrics_is_a_task(write):
    task = load_task(write(COMPLETE), DATA)
    assert list(task.metrics) == ["accuracy"]
    assert task.model.output_shape == (None, 10)
    outputs = np.full((3, 10), 0.1, "float32")
    assert np.asarray(task.loss(np.array([1, 2, 3]), outputs)) == pytest.approx(
        [np.log(10)] * 3, rel=1e-5
    )


@pytest.mark.parametrize("name", ["model", "loss", "metrics"])
def test_what_is_missing_is_named(write, name):
    lines = [
        line
        for line in COMPLETE.splitlines()
        if not line.startswith((name, f"def {name}"))
    ]
    text = "\n".join(
        line for line in lines if name != "model" or not line.startswith("    ")
    )
    with pytest.raises(UserError, match=f"`{name}` in .*my_task.py"):
        load_task(write(text), DATA)


def test_a_file_that_fails_tells_its_own_error(write):
    with pytest.raises(UserError, match="ZeroDivisionError: division by zero"):
        import_file(Path(write("1 / 0")))


def test_a_model_without_an_input_shape_is_refused(write):
    text = COMPLETE.replace("keras.Input(data.input_shape), ", "")
    with pytest.raises(UserError, match="without an input shape"):
        load_task(write(text), DATA)


def asked(**train):
    """Return the resolved settings of [train]."""
    return task_defaults("cnn").complete_train(TrainSettings(**train))


def test_a_study_may_ask_for_another_loss_and_other_metrics(write):
    task = load_task(
        write(COMPLETE),
        DATA,
        asked(loss="2*cross_entropy", metrics=["f1", "top_k(k=3)"]),
    )
    outputs = np.full((3, 10), 0.1, "float32")
    assert np.asarray(task.loss(np.array([1, 2, 3]), outputs)) == pytest.approx(
        [2 * np.log(10)] * 3, rel=1e-5
    )
    assert list(task.metrics) == ["f1", "top_k_3"]
    assert task.sense[:2] == ("higher", True)


def test_a_task_file_may_name_ours_and_keras_metrics(write):
    text = COMPLETE.replace('["accuracy"]', '["f1", "top_k(k=3)", "accuracy", "mse"]')
    metrics = load_task(write(text), DATA).metrics
    assert list(metrics) == ["f1", "top_k_3", "accuracy", "mse"]
    assert [type(each).__module__.split(".")[0] for each in metrics.values()] == [
        "scalestudy",
        "scalestudy",
        "keras",
        "keras",
    ]
    named = COMPLETE.replace('["accuracy"]', '{"best_two": "top_k(k=2)"}')
    assert list(load_task(write(named), DATA).metrics) == ["best_two"]


def test_a_task_file_may_import_losses_and_metrics(write):
    text = COMPLETE.replace(
        'loss = "sparse_categorical_crossentropy"',
        "from scalestudy.losses import focal as loss",
    )
    text = text.replace(
        'metrics = ["accuracy"]',
        """
from scalestudy.metrics import F1, Dice
def metrics(data):
    return [Dice(data.classes), F1(data.classes)]
""",
    )
    task = load_task(write(text), DATA)
    outputs = np.full((1, 10), 0.1, "float32")
    assert np.asarray(task.loss(np.array([1]), outputs)) == pytest.approx(
        [0.81 * np.log(10)], rel=1e-5
    )
    assert list(task.metrics) == ["dice", "f1"] and task.sense.better == "higher"


def test_a_misspelt_metric_of_a_task_file_is_refused_with_its_parameters(write):
    with pytest.raises(UserError) as error:
        load_task(write(COMPLETE.replace('["accuracy"]', '["top_k(n=3)"]')), DATA)
    assert (
        error.value.expected == "each parameter of top_k once (it has k), in `metrics`"
    )


def test_named_losses_and_metrics_are_refused_for_other_outputs_than_classes(write):
    text = COMPLETE.replace("Dense(data.classes, ", "Dense(7, ")
    with pytest.raises(
        UserError, match="one output of 10 probabilities for each sample"
    ) as error:
        load_task(write(text), DATA, asked(loss="bce"))
    assert error.value.received == "outputs of shape (None, 7)"
    load_task(write(text), DATA)  # its own outputs may have any shape


SUBCLASSED = """
import keras
class Mine(keras.Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.flatten = keras.layers.Flatten()
        self.dense = keras.layers.Dense(units, activation="softmax")
    def build(self, shape):
        self.dense.build((None, shape[1] * shape[2] * shape[3]))
        self.built = True
    def call(self, inputs):
        return self.dense(self.flatten(inputs))
    def get_config(self):
        return {**super().get_config(), "units": self.units}
def model(data):
    model = Mine(data.classes)
    model.build((None, *data.input_shape))
    return model
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


def test_named_losses_and_metrics_go_with_a_model_of_a_class_of_the_users_own(write):
    task = load_task(
        write(SUBCLASSED), DATA, asked(loss="2*cross_entropy", metrics=["f1"])
    )
    assert list(task.metrics) == ["f1"]
    with pytest.raises(
        UserError, match="one output of 10 probabilities for each sample"
    ):
        load_task(
            write(SUBCLASSED.replace("Mine(data.classes)", "Mine(7)")),
            DATA,
            asked(loss="bce"),
        )


def test_what_learns_nothing_has_no_quality_where_a_model_does_not_tell_its_outputs(
    write,
):
    from scalestudy.engines.tensorflow.replicas import CompiledReplicas, TensorGroup
    from scalestudy.engines.tensorflow.trainer import CompiledEvaluation

    task = load_task(write(SUBCLASSED), DATA)
    alone = CompiledReplicas(TensorGroup(0, 1), 1, slices=[(0, 1)], size=1)
    evaluation = CompiledEvaluation(task, alone, scale=1.0)
    assert evaluation.constant([np.arange(10)], np.full(10, 0.1)) is None


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Torch not compiled with CUDA enabled", ".cuda()"),
        ("Input type (double) and bias type (float) should be the same", ".double()"),
        (
            "This backward function was compiled with non-empty donated buffers",
            "torch.compile",
        ),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "mixed_bfloat16"),
        ("no such file", "python"),
    ],
)
def test_an_error_of_a_task_file_that_took_on_the_engines_work_is_told_what_to_leave_out(
    tmp_path, words, named
):
    (tmp_path / "own.py").write_text(f"raise RuntimeError({words!r})\n")
    with pytest.raises(UserError) as caught:
        import_file(tmp_path / "own.py")
    assert named in caught.value.action


OWN_MODEL = """
import keras
class Own(keras.Sequential):
    def {method}(self, *arguments, **named):
        pass
def model(data):
    return Own([keras.Input(data.input_shape), keras.layers.Flatten(), keras.layers.Dense(data.classes)])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.mark.parametrize(
    ("method", "instead"),
    [
        ("train_step", "training_losses"),
        ("compute_loss", "training_losses"),
        ("test_step", "`metrics`"),
    ],
)
def test_a_model_with_its_own_step_is_refused_with_what_to_define(
    write, method, instead
):
    with pytest.raises(UserError, match=rf"Own\.{method} in .*my_task.py") as refused:
        load_task(write(OWN_MODEL.format(method=method)), DATA)
    assert instead in refused.value.action


COMPILED = """
import keras, re
words = re.compile("a")
def model(data):
    made = keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(), keras.layers.Dense(2)])
    {line}
    return made
loss = "mse"
metrics = ["mse"]
"""


@pytest.mark.parametrize(
    "line",
    ["made.compile('adam', 'mse')", "made.compile(optimizer='adam', loss='mse')"],
)
def test_a_model_that_its_file_compiles_is_refused_since_that_has_no_effect(
    write, line
):
    with pytest.raises(UserError, match=r"compile\(…\) in line 6") as refused:
        load_task(write(COMPILED.format(line=line)), DATA)
    assert "optimizer" in refused.value.action and "`metrics`" in refused.value.action


@pytest.mark.filterwarnings(
    "ignore:Skipping variable loading for optimizer:UserWarning"
)
def test_a_model_that_comes_compiled_stays(write, tmp_path):
    import keras

    source = keras.Sequential(
        [keras.Input(DATA.input_shape), keras.layers.Flatten(), keras.layers.Dense(2)]
    )
    source.compile("adam", "mse")
    source.save(tmp_path / "given.keras")
    line = f"made = keras.models.load_model({str(tmp_path / 'given.keras')!r})"
    assert load_task(write(COMPILED.format(line=line)), DATA).model.compiled


def test_a_step_that_training_losses_replace_may_stay(write):
    text = OWN_MODEL.format(method="train_step")
    losses = "def training_losses(model, loss, inputs, targets):\n    return loss(targets, model(inputs))\n"
    assert load_task(write(text + losses), DATA).training_losses is not None


def refuse(file):
    refuse_incomplete(
        module_of(file), task_defaults(file).complete_train(TrainSettings())
    )


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("class_weight = {0: 1.0, 1: 5.0}", "class_weights = [1.0, 5.0] under [train]"),
        (
            "class_weights = [1, 5]\ndef fit(m, x):\n    m.fit(x, class_weight=class_weights)",
            "under [train]",
        ),
        ('optimizer = "adam"', 'optimizer = "adam" and learning_rate under [train]'),
        ("optimizer = keras.optimizers.Adam(1e-4)", "under [train]"),
    ],
)
def test_arguments_of_fit_in_a_task_file_are_refused_with_what_to_write(
    write, line, instead
):
    with pytest.raises(UserError) as refused:
        refuse(write(f"{COMPLETE}\n{line}\n"))
    assert instead in refused.value.action


def test_class_weights_that_a_loss_of_the_file_reads_are_its_own(write):
    refuse(
        write(
            f"{COMPLETE}\nclass_weights = [1, 5]\ndef weighted(t, o):\n    return class_weights[0] * o\n"
        )
    )


@pytest.mark.parametrize(
    ("callback", "named"),
    [
        ("keras.callbacks.SwapEMAWeights()", "SwapEMAWeights"),
        (
            "keras.callbacks.LambdaCallback(on_train_batch_begin=print)",
            "LambdaCallback.on_train_batch_begin",
        ),
        (
            "type('Own', (keras.callbacks.Callback,), {'on_test_end': lambda self, logs: 0})()",
            "Own.on_test_end",
        ),
    ],
)
def test_callbacks_without_effect_are_refused_by_their_method(write, callback, named):
    with pytest.raises(UserError, match=named):
        load_task(write(f"{COMPLETE}\ncallbacks = [{callback}]\n"), DATA)


def test_callbacks_of_keras_and_methods_that_are_called_stay(write):
    text = "callbacks = [keras.callbacks.EarlyStopping('loss'), keras.callbacks.TensorBoard('logs'),"
    text += " keras.callbacks.LambdaCallback(on_epoch_end=print)]"
    assert len(load_task(write(f"{COMPLETE}\n{text}\n"), DATA).callbacks) == 3
