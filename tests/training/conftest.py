"""Sessions within the tests' own process: data sets made once, logical devices for mirrored workers."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def sets(tmp_path_factory) -> dict[str, tuple[Any, Any]]:
    """Small prepared sets with their splits: 120 digits and 20 indents to train on."""
    from scalestudy.data.prepare import prepare
    from scalestudy.data.split import stored_split

    cache = tmp_path_factory.mktemp("cache")
    digits = prepare("digits", cache=cache)
    indents = prepare("indents:26", image_size=(32, 32), cache=cache)
    return {
        "cnn": (digits, stored_split(digits, 1 - 120 / digits.count, 0)),
        "unet": (indents, stored_split(indents, 6 / 26, 0)),
    }


@pytest.fixture(scope="session")
def two_devices(framework) -> Any:
    """One strategy for all tests: TensorFlow confuses the collectives of two in one process."""
    return framework.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


@pytest.fixture
def session(sets, two_devices):
    """Make a session: session(task, implementation, workers, **train settings)."""
    import keras

    from scalestudy.engines.tensorflow.precision import set_precision
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.strategies.distributed import Distributed
    from scalestudy.strategies.single import Single
    from scalestudy.strategies.virtual import Virtual
    from scalestudy.study.point import Point
    from scalestudy.training.session import Session

    class Mirrored(Distributed):
        def slices(self) -> list[tuple[int, int]]:
            return [(worker, worker + 1) for worker in range(self.workers)]

    def make(
        task: str = "cnn", implementation: str = "single", workers: int = 1, seed: int = 0, **train: Any
    ):
        settings = {
            "epochs": 2, "batch_size": 25, "batch": "global", "optimizer": "momentum",
            "learning_rate": 0.05, "schedule": "constant", **train,
        }  # fmt: skip
        kind = task if task in sets else "cnn"
        point = Point.model_validate({
            "name": "test", "study": "test", "task": task, "strategy": implementation,
            "implementation": implementation, "workers": workers, "seed": seed, "train": settings,
            "data": {"source": "digits"},
        })  # fmt: skip
        keras.utils.set_random_seed(seed)
        set_precision(point.train.precision)
        sync = point.train.sync_batch_norm
        if implementation == "mirrored":
            assert workers == 2
            strategy = Mirrored(two_devices, workers, sync_batch_norm=sync)
        else:
            strategy = {"single": Single, "virtual": Virtual}[implementation](workers, sync_batch_norm=sync)
        return Session(point, strategy, *sets[kind], PhaseClock())

    yield make
    set_precision("float32")
