"""Whether a model, once it is saved, can be loaded again: tried before it is trained."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from scalestudy.util.errors import UserError

KERAS = "keras."
"""Beginning of the modules of Keras's own classes."""


def prove_savable(model: keras.Model, path: str, definitions: Mapping[str, Any]) -> None:
    """Save a model to `path`, which ends with ".keras", load it back, and compare the weights.

    `definitions` are classes and functions of the task's file: whoever loads the model has them too.

    Raises:
        UserError: If it cannot be saved, or not be loaded, or comes back with other weights; names the class.
        OSError: If the file cannot be written.
    """
    try:
        model.save(path)
        # The task's own code has just been run, so there is nothing to be kept from running here.
        again = keras.saving.load_model(path, custom_objects=definitions, compile=False, safe_mode=False)
    except OSError:
        raise
    except Exception as error:  # of Keras, or of the user's own classes
        culprit = next((layer for layer in _custom(model) if not _is_remade(layer, definitions)), model)
        kind = type(culprit)
        lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        sentence = f"{type(error).__name__}: {lines.split('. ')[0][:200]}"  # of what is often a page
        raise _unsavable(kind, sentence, _remedy(kind, definitions)) from error
    if not _alike(model, again):
        pairs = zip(_custom(model), _custom(again), strict=False)
        kind = next((type(one) for one, other in pairs if not _alike(one, other)), type(model))
        raise _unsavable(
            kind,
            "it comes back with other weights than it was saved with",
            "Make its weights by self.add_weight() in build(), and leave saving and loading them to Keras.",
        )


def _alike(one: Any, other: Any) -> bool:
    values = one.get_weights(), other.get_weights()
    return len(values[0]) == len(values[1]) and all(map(np.array_equal, *values))


def _unsavable(kind: type, received: str, action: str) -> UserError:
    expected = "a model that can be saved, and loaded again by those who have its task file"
    return UserError(expected, f"{kind.__name__}: {received}", action)


def _remedy(kind: type, definitions: Mapping[str, Any]) -> str:
    name = kind.__name__
    registered = keras.saving.get_registered_name(kind) != name
    if kind not in definitions.values() and not registered and not kind.__module__.startswith(KERAS):
        return (
            f"Import {name} by its name in the task file, or decorate it with "
            "@keras.saving.register_keras_serializable()."
        )
    return (
        f"Give {name} a get_config() that returns the arguments of its __init__, which takes **kwargs "
        "besides; or build the model from layers by keras.Input and keras.Model."
    )


def _is_remade(layer: Any, definitions: Mapping[str, Any]) -> bool:
    """Whether a layer can be described, and made again from that."""
    try:
        stored = keras.saving.serialize_keras_object(layer)
        keras.saving.deserialize_keras_object(stored, custom_objects=definitions, safe_mode=False)
    except Exception:
        return False
    return True


def _custom(model: keras.Model) -> list[Any]:
    """What a model's file describes that is not Keras's own, inner layers first, the model last."""

    def described(model: Any) -> Iterator[Any]:
        # A model of another class than Sequential and Functional describes itself, by its own get_config.
        if isinstance(model, keras.Model) and type(model).__module__.startswith(KERAS):
            for layer in model.layers:
                yield from described(layer)
                yield layer

    return [*(layer for layer in described(model) if not type(layer).__module__.startswith(KERAS)), model]
