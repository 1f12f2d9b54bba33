"""Run folders for workers that tests start under their own launchers."""

from pathlib import Path

import pytest

from data_settings import data_of
from few_digits import few_digits


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A prepared set of digits, 120 of them for training, and its split file."""
    from scalestudy.data.split import stored_split
    from scalestudy.data.store.preparation import prepare

    folder = tmp_path_factory.mktemp("cache")
    made = prepare(data_of(few_digits(folder, 160), cache=folder))
    return made, stored_split(made, 40 / 160, 0)


@pytest.fixture(scope="session")
def make_run(digits, tmp_path_factory):
    """Make the folder of a run: make_run(implementation, workers)."""
    from scalestudy.config.point import Point
    from scalestudy.store.run_folder import RunFolder, write_point

    prepared, split = digits

    def make(implementation: str, workers: int) -> RunFolder:
        train = {
            "epochs": 2,
            "batch_size": 24,
            "batch": "global",
            "optimizer": "momentum",
            "learning_rate": 0.05,
            "schedule": "constant",
        }
        point = Point.model_validate(
            {
                "name": f"{implementation}-w{workers}-s0",
                "study": "test",
                "task": "cnn",
                "strategy": implementation,
                "workers": workers,
                "seed": 0,
                "terms": {"implementation": implementation},
                "data": {"source": "digits"},
                "train": train,
                "files": {"prepared": str(prepared.path), "split": str(split.path)},
            }
        )
        folder: Path = tmp_path_factory.mktemp(point.name) / "run-1"
        folder.mkdir()
        write_point(folder / "point.json", point)
        return RunFolder(folder)

    return make
