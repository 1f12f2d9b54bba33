"""Small image sets, created by the tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.preparation import prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

REAL_DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def real_data() -> Path:
    if not REAL_DATA.is_dir():
        pytest.skip("the shared real images are not on this machine")
    return REAL_DATA


@pytest.fixture
def save() -> Callable[..., Path]:
    """Save an array as an image and create its folder."""

    def save(path: Path, array: Any, **options: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(array)).save(path, **options)
        return path

    return save


@pytest.fixture
def mask_folder(tmp_path: Path, save: Callable[..., Path]) -> Callable[..., Path]:
    """Write a folder of `count` image-mask pairs of 6 x 8 pixels; image i has grey value 10 * i."""

    def make(
        count: int = 4, *, values: tuple[int, int] = (0, 255), at: str = "set"
    ) -> Path:
        root = tmp_path / at
        for i in range(count):
            save(root / "images" / f"s{i}.png", np.full((6, 8), 10 * i, np.uint8))
            mask = np.full((6, 8), values[0], np.uint8)
            mask[:2] = values[1]
            save(root / "masks" / f"s{i}.png", mask)
        return root

    return make


@pytest.fixture
def class_folder(tmp_path: Path, save: Callable[..., Path]) -> Callable[..., Path]:
    """Write a folder of classes with the given numbers of 6 x 8 pixel images."""

    def make(counts: dict[str, int], *, at: str = "classes") -> Path:
        root = tmp_path / at
        for name, count in counts.items():
            for i in range(count):
                save(root / name / f"{i}.png", np.full((6, 8), i, np.uint8))
        return root

    return make


@pytest.fixture
def ready(tmp_path: Path) -> Callable[..., Prepared]:
    """Prepare a source with its own cache."""

    def ready(source: str | Path, **options: Any) -> Prepared:
        options.setdefault("cache", tmp_path / "cache")
        asked = {
            key: options.pop(key)
            for key in ("task_kind", "base", "on_progress")
            if key in options
        }
        return prepare(data_of(source, **options), **asked)

    return ready


@pytest.fixture
def refusal(ready: Callable[..., Prepared]) -> Callable[..., UserError]:
    """Return the error for a source that cannot be prepared."""

    def refusal(source: str | Path, **options: Any) -> UserError:
        with pytest.raises(UserError) as caught:
            ready(source, **options)
        return caught.value

    return refusal
