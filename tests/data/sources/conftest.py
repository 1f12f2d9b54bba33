"""Folders of empty files: layouts are recognised by names alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_settings import data_of
from scalestudy.data.sources.layouts import Listing, list_samples
from scalestudy.util.errors import UserError


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Create empty files with these names below a folder; `{}` stands for 1, 2 and 3."""

    def make(*names: str) -> Path:
        for name in names:
            for path in [name.format(i) for i in (1, 2, 3)] if "{}" in name else [name]:
                (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "set" / path).touch()
        return tmp_path / "set"

    return make


@pytest.fixture
def listed() -> Callable[..., Listing]:
    return lambda root, **keys: list_samples(root, data_of(root, **keys))


@pytest.fixture
def paired(listed: Callable[..., Listing]) -> Callable[..., list[tuple[str, ...]]]:
    """Return the images of a folder with their masks, as names relative to the folder."""

    def paired(root: Path, **keys: Any) -> list[tuple[str, ...]]:
        samples = listed(root, **keys).samples
        return [
            tuple(file.relative_to(root).as_posix() for file in sample.files)
            for sample in samples
        ]

    return paired


@pytest.fixture
def labelled(listed: Callable[..., Listing]) -> Callable[..., dict[str, object]]:
    """Return the images of a folder with the names of their classes."""

    def labelled(root: Path, **keys: Any) -> dict[str, object]:
        samples = listed(root, **keys).samples
        return {
            sample.image.relative_to(root).as_posix(): sample.target
            for sample in samples
        }

    return labelled


@pytest.fixture
def refused(listed: Callable[..., Listing]) -> Callable[..., UserError]:
    """Return the error for a folder that is refused."""

    def refused(root: Path, **keys: Any) -> UserError:
        with pytest.raises(UserError) as caught:
            listed(root, **keys)
        return caught.value

    return refused
