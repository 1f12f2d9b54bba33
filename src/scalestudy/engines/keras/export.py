"""Writing a trained model so that it loads without this package."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scalestudy.study.model_record import EMBEDDED, ModelRecord
from scalestudy.util.errors import UserError

ONNX = ("tf2onnx", "onnx")
"""What Keras needs to write ONNX."""


def export_model(model: keras.Model, record: ModelRecord, out: str, form: str) -> None:
    """Write a model, whole or not at all.

    Args:
        model: As trained: inputs in [0, 1].
        record: What it is of; `inputs` says what the written model is to take.
        out: File, or folder of a SavedModel; replaced if it is there.
        form: "keras", "savedmodel" or "onnx".

    Raises:
        UserError: If it cannot be written in this form.
    """
    if form == "onnx":
        _refuse_without_onnx()
    whole = with_scaling(model, record) if record.inputs == "stored" else model
    path = Path(out)
    half = path.with_name(f".half.{path.name}")
    _remove(half)
    text = record.model_dump_json(indent=1)
    try:
        if form == "keras":
            whole.save(half)
            with zipfile.ZipFile(half, "a") as archive:
                archive.writestr(EMBEDDED, text)
        elif form == "savedmodel":
            whole.export(str(half), format="tf_saved_model", verbose=False)
            (half / EMBEDDED).write_text(text)
        else:
            _export_onnx(whole, str(half), text)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        os.replace(half, path)
    except (UserError, OSError):
        raise
    except Exception as error:  # of Keras or of a converter, which raise many kinds
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise UserError(
            f"a model that can be written as {form}",
            f"{type(error).__name__}: {first[:300]}",
            "Choose another --format; a layer of its own may have no counterpart there.",
        ) from error
    finally:
        _remove(half)


def with_scaling(model: keras.Model, record: ModelRecord) -> keras.Model:
    """The model behind a layer that multiplies stored inputs into [0, 1]."""
    inputs = keras.Input(record.input_shape, dtype=record.dtype, name="image")
    floats = keras.layers.Rescaling(record.scale, dtype="float32", name="scale")(inputs)
    return keras.Model(inputs, model(floats), name=model.name)


def _export_onnx(model: keras.Model, path: str, text: str) -> None:
    import onnx

    given = model.inputs[0]
    model(np.zeros((1, *given.shape[1:]), given.dtype))  # Keras refuses one that was never called
    model.export(path, format="onnx", verbose=False)
    made: Any = onnx.load(path)
    values = {"scalestudy": text, "class_names": json.dumps(json.loads(text)["class_names"])}
    onnx.helper.set_model_props(made, values)
    onnx.save(made, path)


def _refuse_without_onnx() -> None:
    missing = []
    for name in ONNX:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    if missing:
        raise UserError(
            "the packages that write ONNX",
            f"no {' and no '.join(missing)} in this environment",
            "Install them beside Scalestudy: pip install 'scalestudy[onnx]'; or choose --format savedmodel.",
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
