"""The section [data] of a study file, for tests that read data without one."""

from pathlib import Path
from typing import Any

from scalestudy.study.settings import DataSettings


def data_of(source: str | Path, **keys: Any) -> DataSettings:
    """`source`, read with these keys; paths are given as such."""
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in keys.items()}
    return DataSettings(source=str(source), **texts)
