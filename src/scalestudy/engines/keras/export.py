"""Exporting a Keras model, so that it loads without this package."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np

from scalestudy.store.model_record import ModelRecord
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import error_text

ONNX = ("tf2onnx", "onnx")
"""Packages that Keras needs to write ONNX."""


def export_model(
    model: keras.Model,
    record: ModelRecord,
    out: str,
    form: str,
) -> None:
    """Export a trained model of inputs in [0, 1] atomically; see `Engine.export`.

    Raises:
        UserError: If it cannot be written in this form.
    """
    missing: list[str] = []
    if form == "onnx":
        missing = [name for name in ONNX if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            "the packages that write ONNX",
            f"no {' and no '.join(missing)} in this environment",
            "Install them beside Scalestudy: pip install 'scalestudy[onnx]'; or name a folder with --out.",
        )
    whole = with_scaling(model, record)
    with write_whole(out, form) as half:
        if form == "keras":
            whole.save(half)
        elif form == "savedmodel":
            whole.export(str(half), format="tf_saved_model", verbose=False)
        else:
            given = whole.inputs[0]
            # Keras cannot export a model that was never called.
            whole(np.zeros((1, *given.shape[1:]), given.dtype))
            whole.export(str(half), format="onnx", verbose=False)


@contextmanager
def write_whole(out: str, form: str) -> Iterator[Path]:
    """Yield a temporary path for a model, and move it to `out` if the block succeeds.

    Raises:
        UserError: If the block raises an error other than UserError or OSError.
    """
    path = Path(out)
    # Frameworks choose the form by the suffix, which must therefore stay.
    half = path.with_name(f".half.{path.name}")
    _remove(half)
    try:
        yield half
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        os.replace(half, path)
    except (UserError, OSError):
        raise
    except Exception as error:  # of Keras or a converter, of many types
        raise UserError(
            f"a model that can be written as {form}",
            error_text(error),
            "Choose another format by the ending of --out; a custom layer may have no counterpart there.",
        ) from error
    finally:
        _remove(half)


def with_scaling(model: keras.Model, record: ModelRecord) -> keras.Model:
    """Return the model preceded by a layer that scales stored inputs to [0, 1]."""
    inputs = keras.Input(record.input_shape, dtype=record.dtype, name="image")
    floats = keras.layers.Rescaling(record.scale, dtype="float32", name="scale")(inputs)
    return keras.Model(inputs, model(floats), name=model.name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
