import pytest

from scalestudy.errors import UserError
from scalestudy.launch.local.launcher import refuse_missing_software
from scalestudy.machine import installed
from scalestudy.study.catalog import resolved_data, resolved_train
from scalestudy.study.point import Point
from scalestudy.study.settings import DataSettings, TrainSettings


def point(implementation: str) -> Point:
    values = {"name": implementation, "study": "s", "task": "cnn", "workers": 1, "seed": 0}
    settings = {
        "data": resolved_data("cnn", DataSettings()), "train": resolved_train("cnn", TrainSettings()),
    }  # fmt: skip
    return Point.model_validate(
        values | settings | {"strategy": implementation, "terms": {"implementation": implementation}}
    )


def test_a_horovod_point_without_horovod_is_refused_with_the_command_that_builds_it(monkeypatch):
    monkeypatch.setattr(installed, "horovod_built", lambda: False)
    with pytest.raises(UserError, match="make horovod"):
        refuse_missing_software([point("single"), point("horovod")])


def test_without_horovod_everything_else_passes(monkeypatch):
    monkeypatch.setattr(installed, "horovod_built", lambda: False)
    refuse_missing_software([point("single"), point("mirrored"), point("multiworker"), point("virtual")])


def test_without_tensorflow_every_run_is_refused(monkeypatch):
    monkeypatch.setattr(installed, "has_tensorflow", lambda: False)
    with pytest.raises(UserError, match=r"pip install '\.\[cpu\]'"):
        refuse_missing_software([point("single")])
