"""Sessions in the process of the tests: data sets made once, logical devices for mirrored workers."""

from typing import Any

import pytest

from data_settings import data_of
from few_digits import few_digits
from made_points import made_point
from paths import SMALL_UNET


@pytest.fixture(scope="session")
def sets(tmp_path_factory) -> dict[str, tuple[Any, Any]]:
    """Small prepared sets with their splits: 120 digits and 20 indents to train on."""
    from scalestudy.data.preparation import prepare
    from scalestudy.data.split import ensure_split

    cache = tmp_path_factory.mktemp("cache")
    digits = prepare(data_of(few_digits(cache, 200), cache=cache))
    indents = prepare(data_of("indents:26", image_size=(32, 32), cache=cache))
    return {
        "cnn": (digits, ensure_split(digits, 80 / 200, 0)),
        "unet": (indents, ensure_split(indents, 6 / 26, 0)),
    }


@pytest.fixture
def session(sets, placement, two_devices):
    """Make a session: session(task, implementation, workers, **train settings); "unet" is a small U-Net.

    The data is the task's own set, or the set named `data`; `weights` are prepared class weights.
    """
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.engine import ENGINE, set_arithmetic
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
        settings = {
            "batch_size": 25,
            "batch": "global",
            "optimizer": "momentum",
            "learning_rate": 0.05,
        }
        kind = data or (task if task in sets else "cnn")
        point = made_point(
            implementation,
            settings | train,
            task=str(SMALL_UNET) if task == "unet" else task,
            workers=workers,
            seed=seed,
            terms={"implementation": implementation, "launch": launch or {}},
        ).with_files("", "", weights)
        set_arithmetic(seed, point.train.precision)
        if implementation == "mirrored":
            assert workers == 2
            joined = two_devices
        else:
            joined = join(implementation, placement, workers=workers, device="cpu")
        return Session(point, ENGINE, joined, *sets[kind], PhaseClock())

    yield make
    set_arithmetic(0, "float32")
