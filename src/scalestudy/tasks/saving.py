"""Check before training that a model can be saved and loaded again."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from scalestudy.util.errors import UserError

EXPECTED = "a model that can be saved, and loaded again by those who have its task file"


def prove_savable(model: keras.Model, path: str, definitions: Mapping[str, Any]) -> None:
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
        model.save(path)
        # The task's code has already run in this process, so safe mode would protect nothing.
        again = keras.saving.load_model(path, custom_objects=definitions, compile=False, safe_mode=False)
    except OSError:
        raise
    except Exception as error:  # raised by Keras or by the user's classes
        lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise UserError(
            EXPECTED,
            f"{_own_classes(model)}: {type(error).__name__}: {lines.split('. ')[0][:200]}",  # of a page
            "Import each by its name in the task file, and give it a get_config() that returns the arguments "
            "of its __init__, which takes **kwargs besides; or build the model of Keras's own layers.",
        ) from error
    before, after = model.get_weights(), again.get_weights()
    if len(before) != len(after) or not all(map(np.array_equal, before, after)):
        raise UserError(
            EXPECTED,
            f"{_own_classes(model)}: its weights differ after saving and loading",
            "Create weights with self.add_weight() in build(), and let Keras save and load them.",
        )


def _own_classes(model: keras.Model) -> str:
    names = dict.fromkeys(
        kind.__name__ for kind in _classes(model) if not kind.__module__.startswith("keras.")
    )
    return ", ".join(names) or type(model).__name__


def _classes(layer: keras.layers.Layer) -> Iterator[type]:
    yield type(layer)
    for inner in layer.layers if isinstance(layer, keras.Model) else ():
        yield from _classes(inner)
