"""The metrics of a task, the quality first, and what they mean: which way is better."""

import inspect
from typing import Any, get_args

import keras

from scalestudy.study.formula import WrongFormula, called
from scalestudy.study.metrics import UNKNOWN, Better, Sense, known
from scalestudy.study.objectives import METRICS, metric_term
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.named_metrics import named_metric
from scalestudy.tasks.regression import BY_NAME
from scalestudy.util.errors import UserError

WAYS = get_args(Better)


def metrics_of(
    given: Any, declared: Any, file: Any, data: DataInfo | None = None
) -> tuple[dict[str, keras.Metric], dict[str, Sense]]:
    """Metrics, and what each means, by name.

    Args:
        given: Metrics, functions (targets, outputs) -> values, or their names; or a dictionary of these.
        declared: `better` of the task file: "higher" or "lower" by the name of a metric.
        file: The task file, for messages.
        data: What a name of ours ("top_k(k=3)") is made for; without it, names are Keras's.

    Raises:
        UserError: If there is none, or nothing says whether higher or lower is better for the first.
    """
    if data is not None:
        given = with_ours(given, data, file)
    named = given if isinstance(given, dict) else by_order(given)
    if not named:
        raise UserError(
            "at least one metric, the quality first",
            "none",
            'Name one in the task file: metrics = ["accuracy"].',
        )
    _refuse_misspelt(declared, list(named), file)
    found = {name: _found(each) for name, each in named.items()}
    if hasattr(next(iter(found.values())), "matrix"):
        raise UserError(
            "a metric that is one number first, since it is the quality",
            f"{next(iter(found))} in {file}",
            "Put another before it.",
        )
    senses = {name: sense_of(each) for name, each in found.items()}
    senses |= {name: senses[name]._replace(better=way) for name, way in declared.items()}
    quality = next(iter(found))
    if senses[quality].better is None:
        raise UserError(
            f"to know whether higher or lower is better for the quality, {quality!r} in {file}",
            "a metric that is not Keras's own, with nothing that says so",
            f'Add to the task file: better = {{{_quoted(quality)}: "higher"}}, or "lower".',
        )
    return {name: _metric(each) for name, each in found.items()}, senses


def sense_of(metric: Any) -> Sense:
    """What a metric says of itself (`better`, `bounded`), else what is known of Keras's class or function.

    A subclass of one of Keras's classes means what that class means; Keras's losses are better lower, also
    those that go by a metric's name (`keras.losses.cosine_similarity` is negative).
    """
    better, bounded = getattr(metric, "better", None), getattr(metric, "bounded", None)
    if better in WAYS:
        return Sense(better, bounded)
    if inspect.isfunction(metric):
        if getattr(keras.losses, metric.__name__, None) is metric:
            return Sense("lower", bounded=False)
        return known(metric.__name__) if _is_keras(metric) else UNKNOWN
    known_bases = (known(base.__name__) for base in type(metric).__mro__ if _is_keras(base))
    return next((sense for sense in known_bases if sense.better), UNKNOWN)


def _is_keras(thing: Any) -> bool:
    return getattr(keras.metrics, thing.__name__, None) is thing


def _refuse_misspelt(declared: Any, names: list[str], file: Any) -> None:
    right = isinstance(declared, dict) and declared.keys() <= set(names)
    if not right or not all(way in WAYS for way in declared.values()):
        example = f'better = {{{_quoted(names[0])}: "higher"}}'
        raise UserError(
            f'`better` in {file}: "higher" or "lower" by the name of a metric ({", ".join(names)})',
            repr(declared),
            f'Write it as {example}, or "lower".',
        )


def with_ours(given: Any, data: DataInfo, file: Any) -> Any:
    """The same with metrics in the place of our names for them."""
    if isinstance(given, dict):
        return {name: with_ours(each, data, file) for name, each in given.items()}
    if isinstance(given, list | tuple):
        return [with_ours(each, data, file) for each in given]
    # Keras's accuracy takes labels of more shapes than ours, which only masks need.
    keras_own = not isinstance(given, str) or (given == "accuracy" and data.kind != "masks")
    if keras_own or (called(given) not in METRICS and given.replace("_", "").isalnum()):
        return given
    try:
        return named_metric(metric_term(given), data)
    except WrongFormula as wrong:
        raise UserError(f"{wrong.expected} in `metrics`", f"{given!r} in {file}", wrong.action) from None


def _quoted(name: str) -> str:
    return f'"{name}"'


def by_order(given: Any) -> dict[Any, Any]:
    """A metric or several by their names."""
    each = given if isinstance(given, list | tuple) else [given]
    return {getattr(one, "name", None) or getattr(one, "__name__", None) or str(one): one for one in each}


def _found(given: Any) -> Any:
    """A metric, or a function; names and classes are resolved."""
    if given == "accuracy":
        return keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    if isinstance(given, str) and given in BY_NAME:
        return BY_NAME[given]()
    if isinstance(given, str):
        given = keras.metrics.get(given)
    return given() if isinstance(given, type) and issubclass(given, keras.Metric) else given


def _metric(found: Any) -> keras.Metric:
    if isinstance(found, keras.Metric):
        return found
    return keras.metrics.MeanMetricWrapper(found, name=getattr(found, "__name__", "metric"))
