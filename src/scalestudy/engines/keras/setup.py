"""Keras in a worker: precision, and no downloads."""

from typing import Any, NoReturn

import keras

from scalestudy.engines.keras.private import replace_downloads
from scalestudy.util.errors import UserError


def set_precision(precision: str) -> None:
    """Make `precision` the policy of all layers made from now on; "tf32" is float32 to Keras."""
    keras.config.set_floatx("float64" if precision == "float64" else "float32")
    keras.config.set_dtype_policy("float32" if precision == "tf32" else precision)


def forbid_downloads() -> None:
    """Refuse downloads through `keras.utils.get_file`, by which `keras.applications` gets its weights.

    A compute node often has no network, where a download would hang until the job's end; and many
    workers would fetch the same file at once.
    """
    replace_downloads(_refuse)


def _refuse(url: str, *_: Any, **__: Any) -> NoReturn:
    raise UserError(
        "weights and other files of the task to be there before the run",
        f"a download of {url} in a worker",
        "Run `scalestudy data prepare STUDY` where there is a network, with the same KERAS_HOME.",
    )
