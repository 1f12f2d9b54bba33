import pytest

from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.util.errors import UserError

TRAIN = {"epochs": 2, "batch_size": 8, "optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}


def point(**changes) -> Point:
    values = {
        "name": "p",
        "study": "s",
        "task": "cnn",
        "strategy": "native",
        "workers": 2,
        "seed": 0,
        "data": {"source": "digits"},
        "train": TRAIN,
        "terms": {"implementation": "mirrored"},
    }
    return Point.model_validate(values | changes)


def test_where_data_lie_and_what_cannot_change_a_result_make_no_other_point():
    moved = point(data={"source": "digits", "cache": "/scratch"}).with_files("/a", "/b")
    assert moved.same_as(point())
    assert moved.identity() == point().identity()


def test_a_point_that_version_0_1_0_stored_is_the_same():
    assert point(data={"source": "digits", "storage": "auto"}).identity() == point().identity()


def test_how_long_it_may_stand_still_makes_no_other_terms():
    assert point().same_as(point().on(launch=ResolvedLaunch(progress_timeout=60)))
    assert not point().same_as(point().on(launch=ResolvedLaunch(cpus_per_worker=2)))


def test_other_terms_make_another_point_of_the_same_identity():
    other = point().on(launch=ResolvedLaunch(cpus_per_worker=2))
    assert not other.same_as(point())
    assert other.identity() == point().identity()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"workers": 3},
        {"task": "unet"},
        {"train": TRAIN | {"epochs": 3}},
        {"strategy": "mirrored"},
    ],
)
def test_whatever_is_computed_otherwise_makes_another_point(change):
    assert not point(**change).same_as(point())


def test_a_point_that_is_only_planned_says_how_to_start_it():
    with pytest.raises(UserError, match="scalestudy run"):
        point().needed_files()


@pytest.mark.parametrize(
    ("strategy", "batch", "update", "ratio", "places"),
    [
        ("mirrored", "per-worker", 16, 2, 2),
        ("parameter-server", "per-worker", 8, 1, 4),
        ("mirrored", "global", 8, 1, 2),
        ("parameter-server", "global", 4, 0.5, 4),
    ],
)
def test_an_update_is_of_all_workers_or_of_one(strategy, batch, update, ratio, places):
    made = point(strategy=strategy, terms={"implementation": strategy}, train=TRAIN | {"batch": batch})
    assert (made.update_batch, made.batch_ratio, made.places) == (update, ratio, places)
