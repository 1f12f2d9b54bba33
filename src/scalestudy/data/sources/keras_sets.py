"""Data sets of `keras.datasets` by name: "keras:mnist".

`python -m scalestudy.data.sources.keras_sets NAME FOLDER` downloads and exports one as `set.npz`. Only this
process imports Keras. The export is read like any .npz file, also in
environments without Keras.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.cluster.environment import process_environment
from scalestudy.config.settings import DataSettings
from scalestudy.data.child import answer, ask
from scalestudy.data.sources.base import Contents, Downloading, digest, silently
from scalestudy.data.sources.npz import Npz
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.write import locked, new_folder
from scalestudy.data.types import Sample
from scalestudy.plugins.engines import engine_traits, installed_engine
from scalestudy.util import modules
from scalestudy.util.errors import UserError

SET = "set.npz"
ALONE = "Load the set in Python with Keras alone, to see the whole error."
NAMES = ("mnist", "fashion_mnist", "cifar10", "cifar100")
FASHION = "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot"
CIFAR10 = "airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck"
CLASS_NAMES = {"fashion_mnist": FASHION, "cifar10": CIFAR10}
"""Names of classes that `keras.datasets` gives only in its documentation."""


class KerasSet:
    """Source of a set of `keras.datasets`. Only `fetch` downloads files."""

    kind: Kind = "classes"

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        if argument not in NAMES:
            raise UserError(
                f"one of {', '.join(f'keras:{name}' for name in NAMES)}",
                f"keras:{argument}" if argument else '"keras" without a name',
                "Correct the name; `read(data)` of a task file may load any other set.",
            )
        self._name, self._data = argument, data
        self.label, self.identity = f"keras-{argument}", f"keras:{argument}"
        self.fingerprint = digest("public", self.identity, "2 ")
        self._place = Path(str(data.cache)) / "downloads" / self.label

    def fetch(self, downloading: Downloading = silently) -> None:
        """Download and export the set, unless it is there; processes that need it wait for each other.

        Raises:
            UserError: If Keras is missing or cannot download it, or the cache is not writable or full.
        """
        if self._is_whole():
            return
        with locked(self._place) as alone:
            if not self._is_whole():
                with (
                    downloading(self.identity, "samples"),
                    new_folder(self._place, self._is_whole, alone=alone) as temporary,
                ):
                    ask_export(self._name, temporary)

    def contents(self) -> Contents:
        if not self._is_whole():
            raise UserError(
                "a downloaded data set",
                f"{self.identity}, not downloaded to {self._place}",
                "Run `scalestudy data prepare` on it or on the study, where there is a network.",
            )
        self._arrays = Npz(self._place / SET, self._data)
        return self._arrays.contents()

    def rows(self) -> Iterator[Sample]:
        return self._arrays.rows()

    def class_names(self) -> list[str]:
        known = CLASS_NAMES.get(self._name)
        return known.split(", ") if known else self._arrays.class_names()

    def _is_whole(self) -> bool:
        return (self._place / SET).is_file()


def ask_export(name: str, folder: Path) -> None:
    """Export a set in a process of its own.

    Raises:
        UserError: If Keras is missing, or cannot download the set.
    """
    answer = ask(modules.EXPORT, name, str(folder))
    if answer.code:
        raise UserError(f"keras:{name} from Keras", answer.end(), ALONE)


def export(name: str, folder: Path) -> None:
    """Write a set of `keras.datasets` as `set.npz`.

    Raises:
        UserError: If Keras is missing or cannot download the set.
    """
    try:
        train, test = importlib.import_module(f"keras.datasets.{name}").load_data()
    except Exception as error:  # Keras's downloader raises a plain Exception
        raise UserError(
            f"keras:{name} from keras.datasets",
            f"{type(error).__name__}: {str(error)[:300]}",
            "Run it where Keras is installed and there is a network, with the same `cache`; or put the file "
            "into ~/.keras/datasets.",
        ) from error
    np.savez(folder / SET, x_train=train[0], y_train=train[1], x_test=test[0], y_test=test[1])


def _export_without_gpus(name: str, folder: str) -> dict[str, Any]:
    traits = engine_traits(installed_engine())
    os.environ.update(process_environment(os.environ, traits, gpus=(), quiet=True).values)
    export(name, Path(folder))
    return {}


if __name__ == "__main__":
    answer(lambda _: _export_without_gpus(*sys.argv[1:]), f"keras:{sys.argv[1]} from Keras", lambda _: ALONE)
