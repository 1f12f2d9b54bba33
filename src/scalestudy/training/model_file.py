"""The file of a run's model: tried before the training, written after the result."""

import os
import traceback
from pathlib import Path

import numpy as np

from scalestudy.data.columns import leaves
from scalestudy.data.loading.reader import reader_of
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Trainer
from scalestudy.study.model_record import ModelRecord
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import RunError


def record_of(point: Point, prepared: Prepared, metric: str) -> ModelRecord:
    """What the models of a run are of."""
    (_, dtype), *_ = leaves(reader_of(prepared).forms(np.array([0]))[0])
    return ModelRecord(
        engine=point.engine,
        task=point.task,
        kind=prepared.kind,
        input_shape=() if prepared.kind == "custom" else prepared.input_shape,
        dtype=dtype.name,
        scale=prepared.scale or 1.0,
        class_names=list(prepared.class_names),
        ignore=prepared.ignore,
        data=point.data.model_dump(mode="json"),
        train=point.train.model_dump(mode="json"),
        class_weights=point.class_weights,
        metric=metric,
    )


def try_saving(folder: RunFolder, trainer: Trainer) -> None:
    """Save the untrained model and load it back, so that no run is computed for a model that cannot be kept.

    Raises:
        UserError: If the model cannot be saved or loaded; names the class at fault.
        RunError: If the folder cannot take the file.
    """
    half = _half(folder)
    try:
        trainer.prove_savable(str(half))
    except OSError as error:
        raise RunError(
            "a folder that can take the model of its run",
            f"{error} at {folder.path}",
            "Free some space or quota there, or name another folder with --out.",
        ) from error
    finally:
        half.unlink(missing_ok=True)


def save(folder: RunFolder, trainer: Trainer) -> str | None:
    """Put the model into the run's folder, whole or not at all.

    Returns:
        Why it is not there; None if it is. The whole error is in the log.
    """
    half = _half(folder)
    try:
        trainer.save(str(half))
        os.replace(half, folder.model)
    except Exception as error:  # what was measured stands, whatever an engine or a disk does here
        traceback.print_exc()
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    finally:
        half.unlink(missing_ok=True)
    return None


def _half(folder: RunFolder) -> Path:
    return folder.model.with_name(f".half.{folder.model.name}")  # frameworks ask for the suffix
