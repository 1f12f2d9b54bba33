"""The metrics of a task, the quality first, and the better direction of each."""

import inspect
from typing import Any, get_args

import keras

from scalestudy.config.formula import FormulaTerm, WrongFormula, is_formula, suggestion
from scalestudy.config.metric_senses import Better, Sense, known
from scalestudy.config.objectives import METRICS, metric_key, metric_term, refuse_unfit
from scalestudy.tasks.label_metrics import NAMED
from scalestudy.tasks.number_metrics import R2, Mae, Rmse
from scalestudy.tasks.task import DataInfo, is_module
from scalestudy.util.errors import UserError

WAYS = get_args(Better)
OF_NUMBERS = {"mae": Mae, "rmse": Rmse, "r2": R2}
"""Metrics for numbers, by their names in task files."""


def make_metric(term: FormulaTerm, data: DataInfo) -> keras.Metric:
    """Create the metric of a term for this data.

    Raises:
        UserError: If the metric does not apply to this data.
    """
    refuse_unfit([term], data.classes)
    return NAMED.get(term.name)(
        data.classes,
        data.ignore,
        name=metric_key(term),
        **term.parameters,
    )


def metrics_of(
    given: Any,
    declared: Any,
    file: Any,
    data: DataInfo | None = None,
) -> tuple[dict[str, keras.Metric], dict[str, Sense]]:
    """Return metrics and their senses by name.

    Args:
        given: Metrics, functions (targets, outputs) -> values, or their names; or a dictionary of these.
        declared: `better` of the task file: "higher" or "lower" by the name of a metric.
        file: Where the metrics are named, for messages.
        data: Data for Scalestudy's own metrics ("top_k(k=3)"). If None, all names are Keras's.

    Raises:
        UserError: If there is no metric, or the better direction of the first is unknown.
    """
    named = _by_name(given if data is None else _with_ours(given, data, file))
    if not named:
        raise UserError(
            "at least one metric, the quality first",
            "none",
            'Name one in the task file: metrics = ["accuracy"].',
        )
    quality = next(iter(named))
    example = f'better = {{"{quality}": "higher"}}'
    right = isinstance(declared, dict) and declared.keys() <= named.keys()
    if not right or not all(way in WAYS for way in declared.values()):
        raise UserError(
            f'`better` in {file}: "higher" or "lower" by the name of a metric ({", ".join(named)})',
            repr(declared),
            f'Write it as {example}, or "lower".',
        )
    metrics = {name: _resolve(metric, file) for name, metric in named.items()}
    for metric in metrics.values():
        if not _is_metric(metric):
            raise UserError(
                f"metrics of Keras, names, or functions (targets, outputs) in `metrics` of {file}",
                type(metric).__name__,
                "Name one of Scalestudy's, or write a function that returns one value per sample.",
            )
    senses = {name: sense_of(metric) for name, metric in metrics.items()}
    for name, way in declared.items():
        senses[name] = senses[name]._replace(better=way)
    if senses[quality].better is None:
        raise UserError(
            f"a quality of known direction: {quality!r} in {file}",
            "a custom metric without `better`",
            f'Add to the task file: {example}, or "lower".',
        )
    for name, metric in metrics.items():
        if not isinstance(metric, keras.Metric):  # a function
            # The wrapper keeps sums over samples, so that the workers' parts add up to the value of the whole set.
            label = getattr(metric, "__name__", "metric")
            metrics[name] = keras.metrics.MeanMetricWrapper(metric, name=label)
    return metrics, senses


def refuse_unknown_metrics(given: Any, file: str) -> None:
    """Refuse `metrics` of a task file that hold a text which names no metric.

    Raises:
        UserError: Naming what was probably meant.
    """
    if isinstance(given, dict):
        refuse_unknown_metrics(list(given.values()), file)
    elif isinstance(given, list | tuple):
        for metric in given:
            refuse_unknown_metrics(metric, file)
    elif isinstance(given, str):
        if is_formula(given, METRICS):
            _term(given, file)
        else:
            _resolve(given, file)


def sense_of(metric: Any) -> Sense:
    """Return a metric's own `better` and `bounded`, or the known values of a Keras class or function.

    A subclass of a Keras class has the sense of that class. For Keras losses lower is better, even if a
    metric has the same name (`keras.losses.cosine_similarity` is negative).
    """
    better = getattr(metric, "better", None)
    bounded = getattr(metric, "bounded", None)
    if better in WAYS:
        return Sense(better, bounded)
    if inspect.isfunction(metric):
        if getattr(keras.losses, metric.__name__, None) is metric:
            return Sense("lower", bounded=False)
        # A user's function may have the name of one of Keras's, and another sense.
        return known(metric.__name__) if _is_keras(metric) else Sense(None)
    for base in type(metric).__mro__:
        if _is_keras(base):
            sense = known(base.__name__)
            if sense.better:
                return sense
    return Sense(None)


def _is_metric(thing: Any) -> bool:
    """Whether it is a metric or a function; metrics of torchmetrics are modules, with another interface."""
    return isinstance(thing, keras.Metric) or (callable(thing) and not is_module(thing))


def _is_keras(thing: Any) -> bool:
    return getattr(keras.metrics, thing.__name__, None) is thing


def _with_ours(given: Any, data: DataInfo, file: Any) -> Any:
    """Replace the names of Scalestudy's own metrics by metrics."""
    if isinstance(given, dict):
        return {name: _with_ours(metric, data, file) for name, metric in given.items()}
    if isinstance(given, list | tuple):
        return [_with_ours(metric, data, file) for metric in given]
    # Keras's accuracy accepts more shapes of labels than ours, which only masks need.
    keras_own = not isinstance(given, str) or (
        given == "accuracy" and data.kind != "masks"
    )
    if keras_own or not is_formula(given, METRICS):
        return given
    return make_metric(_term(given, file), data)


def _term(text: str, file: Any) -> FormulaTerm:
    try:
        return metric_term(text)
    except WrongFormula as wrong:
        raise UserError(
            f"{wrong.expected} in `metrics`",
            f"{text!r} in {file}",
            wrong.action,
        ) from None


def _by_name(given: Any) -> dict[Any, Any]:
    """Return a dictionary unchanged; return one metric or a list as a dictionary by name."""
    if isinstance(given, dict):
        return given
    metrics: Any = [given]
    if isinstance(given, list | tuple):
        metrics = given
    named = {}
    for one in metrics:
        own = getattr(one, "name", None) or getattr(one, "__name__", None)
        named[own or str(one)] = one
    return named


def _resolve(given: Any, file: Any) -> Any:
    """Resolve a name or a class to a metric or a function."""
    # `fit` of Keras chooses it by the shapes of targets and outputs, here they are labels.
    if given == "accuracy":
        return keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    if isinstance(given, str):
        given = OF_NUMBERS.get(given) or _of_keras(given, file)
    if isinstance(given, type) and issubclass(given, keras.Metric):
        return given()
    return given


def _of_keras(name: str, file: Any) -> Any:
    try:
        return keras.metrics.get(name)
    except ValueError:
        # Keras lists classes, too, whose names have capitals; task files name functions.
        of_keras = filter(str.islower, dir(keras.metrics))
        close = suggestion(name, (*METRICS, *OF_NUMBERS, *of_keras))
        action = f"Use one of {', '.join(METRICS)}, or one of Keras."
        if close:
            action = f"Did you mean `{close}`?"
        raise UserError("the name of a metric", f"{name!r} in {file}", action) from None
