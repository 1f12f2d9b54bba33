"""Several outputs of a model: a loss and metrics for each by its name, as Keras has them."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras

from scalestudy.data.columns import Described, map_columns
from scalestudy.util.errors import UserError

Losses = Callable[[Any, Any], Any]
"""(targets, outputs) -> losses of shape [B]."""


def names_of(model: keras.Model) -> list[str]:
    """Names of a model's outputs; [] where it has one that stands by itself, or where nobody knows."""
    try:
        outputs = model.output
    except AttributeError:  # a class of the user's own, that has not been called yet
        return []
    if isinstance(outputs, Mapping):
        return list(outputs)
    return list(model.output_names) if isinstance(outputs, list | tuple) and len(outputs) > 1 else []


def symbolic_outputs(model: keras.Model, inputs: Described) -> Any:
    """A model's outputs for inputs such as these, before any is computed.

    A functional model tells them; a Sequential and a class of the user's own are asked for them.
    """
    try:
        return model.output
    except AttributeError:
        return model.compute_output_spec(symbolic(inputs))


def symbolic(columns: Described) -> Any:
    """A batch of such inputs or targets, before there is one."""
    return map_columns(lambda column: keras.KerasTensor((None, *column.shape), column.dtype), columns)


def by_name(names: Iterable[str], outputs: Any) -> Any:
    """Outputs as a dictionary, where a model gives several in a list."""
    return dict(zip(names, outputs, strict=True)) if isinstance(outputs, list | tuple) else outputs


def summed(losses: Mapping[str, Losses], weights: Mapping[str, float], names: list[str]) -> Losses:
    """The losses of the outputs, each with its weight (1 if it has none), summed for each sample."""

    def of_samples(targets: Any, outputs: Any) -> Any:
        named = by_name(names, outputs)
        terms = [weights.get(name, 1.0) * loss(targets[name], named[name]) for name, loss in losses.items()]
        return sum(terms[1:], terms[0])

    return of_samples


def is_by_output(given: Any, names: list[str]) -> bool:
    """Whether metrics are given by the names of outputs, and not by their own."""
    return isinstance(given, Mapping) and bool(names) and bool(given.keys() & set(names))


def metrics_by_output(
    given: Mapping[str, Any], by_order: Callable[[Any], Mapping[Any, Any]]
) -> dict[str, Any]:
    """Metrics by names of our own, OUTPUT_METRIC, from lists of them by output."""
    return {
        f"{output}_{name}": one for output, listed in given.items() for name, one in by_order(listed).items()
    }


def outputs_of(given: Mapping[str, Any], by_order: Callable[[Any], Mapping[Any, Any]]) -> dict[str, str]:
    """Which output each of `metrics_by_output` looks at."""
    return {f"{output}_{name}": output for output, listed in given.items() for name in by_order(listed)}


def refuse_unknown(given: Iterable[str], names: Iterable[str], what: str, file: Any) -> None:
    """Refuse names that are not among `names`.

    Raises:
        UserError: With what is near.
    """
    known = list(names)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UserError(
                f"names of {what} in {file}: {', '.join(known) or 'there are none, it stands by itself'}",
                repr(name),
                f"Did you mean {near[0]!r}?"
                if near
                else "Correct the name, or that of the output in model(data).",
            )
