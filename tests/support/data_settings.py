"""The section [data] of a study file, for tests that read data without a study."""

from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.store.prepared import Prepared


def data_of(source: str | Path, **keys: Any) -> DataSettings:
    """Settings for `source` with these keys; paths are converted to strings."""
    texts = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in keys.items()
    }
    return DataSettings(source=str(source), **texts)


class Labelled(Prepared):
    """A set without arrays on disk: a split reads only its labels."""

    @property
    def targets(self) -> Any:
        return self.__dict__["labels"]


def labelled_set(
    count: int = 0, *, labels: Any = None, given: Any = None, groups: Any = None
) -> Labelled:
    """A set of masks, or of classes with these labels."""
    count = count if labels is None else len(labels)
    prepared = Labelled(
        path=Path("set"),
        source="set",
        fingerprint="",
        kind="masks" if labels is None else "classes",
        count=count,
        input_shape=(8, 8, 1),
        scale=1.0,
        class_names=tuple(
            map(str, range(2 if labels is None else int(max(labels)) + 1))
        ),
        given=given or {},
        groups=tuple(groups) if groups else None,
    )
    prepared.__dict__["labels"] = np.asarray(labels)
    return prepared
