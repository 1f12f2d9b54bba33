"""Sessions in the process of the tests: data sets made once, logical devices for mirrored workers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from few_digits import few_digits
from made_points import made_point
from paths import SMALL_UNET


def photographs(folder: Path, count: int) -> Path:
    """Write smooth colour images of several shapes, in three folders of classes."""
    random = np.random.default_rng(0)
    for number in range(count):
        height, width = [(24, 36), (36, 24), (30, 30), (18, 36)][number % 4]
        y, x = np.mgrid[:height, :width, :1][:2] / 6
        waves = random.uniform(-3, 3, (4, 3, 3))
        light = sum(np.sin(y * one + x * other + phase) for one, other, phase in waves)
        pixels = 128 + 50 * light + random.normal(0, 6, (height, width, 3))
        (folder / f"class-{number % 3}").mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(pixels.clip(0, 255).astype("uint8"))
        image.save(folder / f"class-{number % 3}" / f"{number}.png")
    return folder


@pytest.fixture(scope="session")
def sets(tmp_path_factory) -> dict[str, tuple[Any, Any]]:
    """Small prepared sets with their splits: 120 digits, 20 indents, 24 padded photographs to train on."""
    from scalestudy.data.split import ensure_split
    from scalestudy.data.store.preparation import prepare

    cache = tmp_path_factory.mktemp("cache")
    digits = prepare(data_of(few_digits(cache, 200), cache=cache))
    padded = prepare(data_of(str(photographs(cache / "photographs", 30)), image_size=(20, 20), cache=cache))
    indents = prepare(data_of("indents:26", image_size=(32, 32), cache=cache))
    return {
        "cnn": (digits, ensure_split(digits, 80 / 200, 0)),
        "unet": (indents, ensure_split(indents, 6 / 26, 0)),
        "photographs": (padded, ensure_split(padded, 6 / 30, 0)),
    }


@pytest.fixture
def session(sets, placement, two_devices):
    """Make a session: session(task, implementation, workers, **train settings); "unet" is a small U-Net.

    The data is the task's own set, or the set named `data`; `weights` are prepared class weights.
    """
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.tensorflow_engine import ENGINE, begin
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.training.session import Session

    def make(
        task: str = "cnn",
        implementation: str = "single",
        workers: int = 1,
        seed: int = 0,
        data: str | None = None,
        launch: dict[str, Any] | None = None,
        weights: tuple[float, ...] | None = None,
        **train: Any,
    ):
        settings = {"batch_size": 25, "batch": "global", "optimizer": "momentum", "learning_rate": 0.05}
        kind = data or (task if task in sets else "cnn")
        point = made_point(
            implementation,
            settings | train,
            task=str(SMALL_UNET) if task == "unet" else task,
            workers=workers,
            seed=seed,
            terms={"implementation": implementation, "launch": launch or {}},
        ).with_files("", "", weights)
        begin(seed, point.train.precision)
        if implementation == "mirrored":
            assert workers == 2
            joined = two_devices
        else:
            joined = join(implementation, placement, workers=workers, device="cpu")
        return Session(point, ENGINE, joined, *sets[kind], PhaseClock())

    yield make
    begin(0, "float32")
