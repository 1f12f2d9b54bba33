"""Try a task on two samples of its data, forward and backward, before any run is started or queued."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loader import read_rows
from scalestudy.data.samples import Column, map_columns
from scalestudy.data.store.prepared import Prepared
from scalestudy.tasks.file import remedy_for
from scalestudy.tasks.task import Task
from scalestudy.util.errors import ScalestudyError, UserError
from scalestudy.util.tracebacks import locate_error

NUMPY = (
    "symbolic tf.Tensor",
    "symbolic tensor",
    "KerasTensor cannot be converted",
    "Tensor.__array__",
)
"""Parts of the errors of TensorFlow and Keras when a NumPy function receives a symbolic tensor."""
_NAMES = """
    better callbacks data kind train read sequences vocabularies class_names training_losses engine
    logits
"""
OPTIONAL = tuple(_NAMES.split())
"""Optional names of a task file; a similar name is reported as a likely misspelling."""
EXPECTED = "a model that can be saved, and loaded again by those who have its task file"


def forward(task: Task, prepared: Prepared, file: str) -> Any:
    """Return the model's outputs for two samples.

    Raises:
        UserError: If the model fails on them. It names the line if the error was raised in the task file.
    """
    inputs, _ = two_samples(prepared)
    with _explain(f"model(inputs) of {file} to take samples of the data", inputs):
        return task.model(inputs, training=False)


def refuse_weights(task: Task, file: str, given: str | None) -> None:
    """Refuse a model without weights to train, or with weights that are no finite numbers.

    Raises:
        UserError: Names the task, and `given`, the file of initial weights.
    """
    if not task.trained:
        raise UserError(
            f"a model with weights to train from model(data) in {file}",
            "none",
            "Give it a layer with weights, and leave some trainable.",
        )
    weights = task.model.get_weights()
    wrong = sum(not np.isfinite(each).all() for each in weights)
    if wrong:
        action = "Correct the initial values of its layers."
        if given:
            action = "Name other weights."
        raise UserError(
            "initial weights that are finite numbers",
            f"NaN or infinity in {wrong} of the {len(weights)} arrays of {given or file}",
            action,
        )


def try_task(
    engine: Any,
    task: Task,
    prepared: Prepared,
    outputs: Any,
    file: str,
) -> None:
    """Compute losses, gradients and metrics of two samples as a step does; `outputs` are `forward`'s.

    Raises:
        UserError: If the task raises an error, if losses are not one per sample or not finite, if a loss
            depends on other samples, if a weight has no gradient, or if a metric does not add up.
    """
    inputs, targets = two_samples(prepared)
    _try_gradients(engine, task, inputs, targets, file)
    with _explain(f"the loss of {file} to fit targets and outputs", targets, outputs):
        # Also (0, 2) as a slice: Keras attaches the logits to the outputs of a softmax, but not to slices.
        pair = (targets, outputs)
        losses = _array(task.loss(*_rows(pair, 0, 2)))
        first = _array(task.loss(*_rows(pair, 0, 1)))
        last = _array(task.loss(*_rows(pair, 1, 2)))
    alone = np.concatenate([first, last])
    if not _close(losses, alone):  # workers see only their slice
        raise UserError(
            f"a loss of each sample in {file} that does not depend on other samples",
            f"{losses.ravel()} together, {alone.ravel()} each by itself",
            "Take means over all axes but the first. A loss over pairs cannot be split between workers.",
        )
    for name, metric in task.metrics.items():
        expected = f"the metric {name!r} of {file} to fit targets and outputs"
        with _explain(expected, targets, outputs):
            _refuse_other_sums(name, metric, task.seen_by(name, targets, outputs), file)


def notes_on(
    module: ModuleType,
    task: Task,
    prepared: Prepared,
    outputs: Any,
) -> list[str]:
    """Return notes on likely mistakes that raise no error by themselves.

    Raises:
        UserError: If outputs are always 1, or labels have no output unit or do not fit the loss.
    """
    notes = _notes_on_names(module)
    if not isinstance(task.model, keras.Model):
        from scalestudy.tasks.module import note_on_logits

        return notes + note_on_logits(
            task.model,
            outputs,
            getattr(module, "loss", None),
            str(module.__file__),
        )
    if isinstance(outputs, list | tuple | Mapping):
        return notes
    if len(outputs.shape) > 1 and outputs.shape[-1] == 1:
        _refuse_accuracy_of_one(task)
    kind, logits = _crossentropy(getattr(module, "loss", None))
    if kind is None:
        return notes
    values = _array(outputs)
    low = values.min()
    high = values.max()
    units = values.shape[-1]
    if units == 1 and not logits and np.all(values == 1):
        raise UserError(
            "outputs that depend on the inputs",
            "one unit that is always 1, such as a softmax over one unit",
            'Give the last layer one unit per class, or activation="sigmoid".',
        )
    column = None
    if prepared.columns and isinstance(prepared.columns[1], Column):
        column = prepared.columns[1]
    _refuse_labels(kind, units, column, prepared)
    if logits:
        # Logits may be positive by chance, but hardly sum to 1.
        wrong = low >= 0 and np.allclose(values.sum(axis=-1), 1, atol=1e-3)
        what = "probabilities"
    else:
        wrong = low < -1e-3 or high > 1.001
        what = "no probabilities"
    if wrong:
        notes.append(
            f"Note: outputs from {low:.3g} to {high:.3g} are {what}, and "
            f"{kind} has from_logits={logits}: give it logits with from_logits=True, else probabilities."
        )
    return notes


def _notes_on_names(module: ModuleType) -> list[str]:
    """Return notes on names of a task file that look like misspelt optional ones."""
    absent = [name for name in OPTIONAL if not hasattr(module, name)]
    notes = []
    for name in vars(module):
        if name.startswith("_") or name in OPTIONAL:
            continue
        near = difflib.get_close_matches(name, absent, 1, 0.88)
        if near:
            notes.append(
                f"Note: {name} in {module.__file__} is not used; did you mean {near[0]}?"
            )
    return notes


def note_on_weights(build: Callable[[], keras.Model], file: str) -> list[str]:
    """Return a note if two seeds give a model the same initial weights."""

    def weights(seed: int) -> list[tuple[str, NDArray[Any]]]:
        # As a worker does before it builds the task.
        keras.utils.set_random_seed(seed)
        return [(weight.path, np.array(_array(weight))) for weight in build().weights]

    first = weights(0)
    second = weights(1)
    drawn = None
    for (path, one), (_, other) in zip(first, second, strict=True):
        if not np.array_equal(one, other):
            return []
        # Zeros and ones are constants, of biases and norms.
        if drawn is None and np.unique(one).size > 2:
            drawn = path
    if drawn is None:
        return []
    return [
        f"Note: {file} gives a model the same initial weights from every seed ({drawn}): seeds differ"
        " only in the order of samples, and intervals over them may be too narrow. Build the model in"
        " model(data), and set no seed (torch.manual_seed, keras.utils.set_random_seed), unless all"
        " weights are pretrained."
    ]


def _crossentropy(loss: Any) -> tuple[str | None, bool]:
    """Return the name of a Keras cross-entropy (None for other losses) and whether it takes logits."""
    if isinstance(loss, str):
        try:
            loss = keras.losses.get(loss)
        # Scalestudy has names that Keras has not, such as "focal".
        except ValueError:
            return None, False
    name = getattr(loss, "__name__", type(loss).__name__)
    if "crossentropy" not in name.lower() or getattr(keras.losses, name, None) is None:
        return None, False
    if not isinstance(loss, keras.Loss):
        return name, False
    return name, bool(loss.get_config().get("from_logits", False))


def _refuse_labels(
    kind: str,
    units: int,
    column: Column | None,
    prepared: Prepared,
) -> None:
    if column is not None:
        classes = column.classes
        lowest = column.lowest
        highest = column.highest
    else:
        classes = 0
        if prepared.columns is None:
            classes = prepared.classes
        lowest = 0
        highest = classes - 1
    sparse = kind.lower().replace("_", "").startswith("sparsecategorical")
    if sparse and classes > units:
        raise UserError(
            f"an output unit for each of the {classes} classes (labels 0 to {classes - 1})",
            f"{units} units",
            "Give the last layer one unit per class: data.classes.",
        )
    if kind.lower().startswith("binary") and (highest > 1 or lowest < 0):
        raise UserError(
            f"targets from 0 to 1 for {kind}",
            f"targets from {lowest:g} to {highest:g}",
            "Use sparse_categorical_crossentropy with a unit for each class, or a loss for numbers.",
        )


def _refuse_accuracy_of_one(task: Task) -> None:
    """Refuse the accuracy of most likely classes for outputs of one unit."""
    for name, metric in task.metrics.items():
        if type(metric) is keras.metrics.SparseCategoricalAccuracy:
            raise UserError(
                f"outputs of several classes for the metric {name!r}",
                "one unit, whose most likely class is always 0",
                "Use keras.metrics.BinaryAccuracy().",
            )


def two_samples(prepared: Prepared) -> tuple[Any, Any]:
    """Return inputs and targets of the first and the last sample, in the form that a model receives."""
    inputs, targets = read_rows(prepared, np.array([0, prepared.count - 1]))
    ops = keras.ops
    floatx = keras.config.floatx()
    scale = prepared.scale

    def typed(array: Any) -> Any:
        if array.dtype.kind == "f":
            return ops.convert_to_tensor(array, floatx)
        return ops.convert_to_tensor(array, array.dtype.name)

    def scaled(array: Any) -> Any:
        return ops.convert_to_tensor(array, floatx) * scale

    if scale is None:
        return map_columns(typed, inputs), map_columns(typed, targets)
    return map_columns(scaled, inputs), map_columns(ops.convert_to_tensor, targets)


def _try_gradients(
    engine: Any,
    task: Task,
    inputs: Any,
    targets: Any,
    file: str,
) -> None:
    def compute() -> tuple[Any, Any]:
        losses = _training_losses(task, inputs, targets, file)
        # A mean over samples could not be weighted by the samples of each worker.
        _refuse_shape(losses, file)
        penalties = [keras.ops.sum(penalty) for penalty in task.model.losses]
        return sum(penalties, keras.ops.sum(losses)), losses

    with _explain(f"a step of {file} to be computed", inputs, targets):
        trial = engine.try_step(compute, task.trained)
    if trial.stray is not None:
        raise UserError(
            f"all variables of {file} in the model",
            f"{trial.stray} outside of them, which would not be trained",
            "Make it a weight of a layer of the model; in a module of PyTorch's, lists of layers are"
            " nn.ModuleList, of parameters nn.ParameterList.",
        )
    missing = []
    for variable, reached in zip(task.trained, trial.reached, strict=True):
        if not reached:
            missing.append(variable.path)
    if missing:
        names = ", ".join(missing[:5])
        if len(missing) > 5:
            names += " …"
        action = "Use them in forward, without detach() or no_grad(), or set requires_grad_(False)."
        if isinstance(task.model, keras.Model):
            action = "Use the layer's output, compute with keras.ops only, or set trainable = False there."
        raise UserError(
            f"a gradient for every weight that {file} trains",
            f"none for {names}, on which no loss depends",
            action,
        )
    if not np.isfinite(trial.losses).all():
        raise UserError(
            f"finite losses from {file} before any training",
            f"{', '.join(f'{loss:g}' for loss in trial.losses.ravel())} for the first and the last sample",
            "Look for log(0), a division by 0, or inputs on a scale that the model does not expect.",
        )


def _training_losses(
    task: Task,
    inputs: Any,
    targets: Any,
    file: str,
) -> Any:
    if task.training_losses is not None:
        with _explain(f"training_losses of {file} to work on samples", inputs, targets):
            return task.training_losses(task.model, task.loss, inputs, targets)
    with _explain(f"model(inputs) of {file} to take samples of the data", inputs):
        outputs = task.model(inputs, training=True)
    with _explain(f"the loss of {file} to fit targets and outputs", targets, outputs):
        return task.loss(targets, outputs)


def _refuse_shape(losses: Any, file: str) -> None:
    shape = tuple(losses.shape)
    if shape != (2,):
        received = f"{list(shape)} for 2 samples"
        if not shape:
            received += ": a mean or a sum over samples"
        raise UserError(
            f"losses of shape [B], one per sample, from {file}",
            received,
            "Take means over all axes but the first; workers weight the samples.",
        )


def _refuse_other_sums(
    name: str,
    metric: keras.Metric,
    batch: tuple[Any, Any],
    file: str,
) -> None:
    """Refuse a metric whose variables are not sums over samples: the workers' parts would not add up."""
    start = [keras.ops.convert_to_tensor(variable) for variable in metric.variables]

    def added(pair: tuple[Any, Any]) -> list[Any]:
        state = metric.stateless_update_state(start, *pair)
        differences = []
        for after, before in zip(state, start, strict=True):
            differences.append(_array(after) - _array(before))
        return differences

    both = added(batch)
    first = added(_rows(batch, 0, 1))
    last = added(_rows(batch, 1, 2))
    for total, one, other in zip(both, first, last, strict=True):
        if not _close(total, one + other):
            raise UserError(
                f"a metric whose variables are sums over samples for {name!r} in {file}",
                "a metric for which two samples at once differ from one after the other",
                "Sum numerators and denominators and divide in result(); a function returns one value per"
                " sample.",
            )


def _array(tensor: Any) -> NDArray[Any]:
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-6))


def _rows(structure: Any, start: int, stop: int) -> Any:
    return keras.tree.map_structure(lambda array: array[start:stop], structure)


@contextmanager
def _explain(expected: str, *given: Any) -> Iterator[None]:
    """Turn an error raised inside into a UserError with the line of the user's file and the shapes given."""
    try:
        yield
    # It says what was expected already.
    except ScalestudyError:
        raise
    except Exception as error:
        action = "Correct the task file; `data.inputs` and `data.targets` tell the shapes of its data."
        if any(words in str(error) for words in NUMPY):
            action = "Compute with keras.ops: what NumPy computes has no gradient, and no value yet."
        if expected.startswith("the loss of"):
            action = (
                f"A function of the file is called with (targets, outputs). {action}"
            )
        received = locate_error(error)
        shapes = ", ".join(map(_shapes, given))
        if shapes:
            received += f", with {shapes}"
        raise UserError(expected, received, remedy_for(error, action)) from error


def _shapes(structure: Any) -> str:
    if hasattr(structure, "items"):
        named = [f"{name} {_shapes(value)}" for name, value in structure.items()]
        return ", ".join(named)
    if isinstance(structure, list | tuple):
        return ", ".join(map(_shapes, structure))
    dtype = getattr(structure.dtype, "name", structure.dtype)
    return f"{[None, *structure.shape[1:]]} of {dtype}".replace("None", "B")


def prove_savable(
    model: keras.Model,
    path: str,
    definitions: Mapping[str, Any],
) -> None:
    """Save a model to `path`, which ends with ".keras", load it back, and compare the weights.

    `definitions` are the classes and functions of the task file, which are also there when the model is used.

    Raises:
        UserError: If it cannot be saved or loaded, or if the loaded weights differ.
        OSError: If the file cannot be written.
    """
    if not isinstance(model, keras.Model):
        model.prove_savable(path)
        return
    try:
        # By its own method, as the run does after hours of training.
        model.save(path)
        # The task's code has already run in this process, so safe mode would protect nothing.
        again = keras.saving.load_model(
            path,
            custom_objects=definitions,
            compile=False,
            safe_mode=False,
        )
    except OSError:
        raise
    except Exception as error:  # raised by Keras or by the user's classes
        # The first sentence: Keras's message may be a page.
        sentence, _, _ = " ".join(str(error).split()).partition(". ")
        raise UserError(
            EXPECTED,
            f"{_own_classes(model)}: {type(error).__name__}: {sentence[:200]}",
            "Import each by its name in the task file, and give it a get_config() that returns the arguments "
            "of its __init__, which takes **kwargs besides; or build the model of Keras's own layers.",
        ) from error
    before = model.get_weights()
    after = again.get_weights()
    if len(before) != len(after) or not all(map(np.array_equal, before, after)):
        raise UserError(
            EXPECTED,
            f"{_own_classes(model)}: its weights differ after saving and loading",
            "Create weights with self.add_weight() in build(), and let Keras save and load them.",
        )


def _own_classes(model: keras.Model) -> str:
    names: list[str] = []
    for kind in _classes(model):
        own = not kind.__module__.startswith("keras.")
        if own and kind.__name__ not in names:
            names.append(kind.__name__)
    return ", ".join(names) or type(model).__name__


def _classes(layer: keras.layers.Layer) -> Iterator[type]:
    yield type(layer)
    if isinstance(layer, keras.Model):
        for inner in layer.layers:
            yield from _classes(inner)
