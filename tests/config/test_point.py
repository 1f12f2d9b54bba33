import math

import pytest

from made_points import made_point
from scalestudy.config.file import Study
from scalestudy.config.point import Averages, Point, scale_averages
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.util.errors import UserError


def point(**changes) -> Point:
    return made_point(
        **{"strategy": "native", "workers": 2, "terms": {"implementation": "mirrored"}}
        | changes
    )


def test_where_data_lie_and_what_cannot_change_a_result_make_no_other_point():
    moved = point(data={"source": "digits", "cache": "/scratch"}).with_files("/a", "/b")
    assert moved.same_as(point())
    assert moved.identity() == point().identity()


def test_a_point_and_a_study_that_version_0_1_0_stored_are_the_same():
    removed = {
        "storage": "auto",
        "folds": None,
        "fold": 0,
        "stack": None,
        "layout": None,
        "skip_bad": False,
    }
    assert point(data={"source": "digits", **removed}).identity() == point().identity()
    study = {"name": "a", "task": "cnn", "data": {"source": "digits"}}
    stored = study | {"engine": None, "data": study["data"] | removed}
    assert Study.model_validate(stored) == Study.model_validate(study)


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
        {"train": {"epochs": 3}},
        {"strategy": "mirrored"},
    ],
)
def test_whatever_is_computed_otherwise_makes_another_point(change):
    assert not point(**change).same_as(point())


def test_points_whose_models_are_the_same_begin_with_one_file():
    def file(**changes):
        return (
            point(**changes)
            .with_files("/data", "/split")
            .beginning_in("/initial")
            .needed_files()
            .initial
        )

    train = point().train.model_dump()
    assert file() == file(workers=4) == file(strategy="ddp", engine="torch")
    assert file() == file(
        train=train | {"learning_rate": 0.5}, data={"source": "digits", "cache": "/c"}
    )
    others = [
        file(seed=1),
        file(task="unet"),
        file(train=train | {"precision": "float64"}),
    ]
    assert len({file(), *others}) == 4


def test_a_point_that_is_only_planned_says_how_to_start_it():
    with pytest.raises(UserError, match="scalestudy run"):
        point().needed_files()


@pytest.mark.parametrize(
    ("batch", "update", "ratio"), [("per-worker", 16, 2), ("global", 8, 1)]
)
def test_an_update_is_of_all_workers(batch, update, ratio):
    made = point(train={"batch": batch})
    assert (made.global_batch, made.batch_ratio) == (update, ratio)


ADAM = Averages(0.9, 0.999, 1e-8)


def test_one_reference_batch_changes_nothing():
    assert scale_averages(ADAM, 1) == ADAM


@pytest.mark.parametrize("kappa", [0.5, 14, 64, 1024])
def test_every_batch_has_averages(kappa):
    scaled = scale_averages(ADAM, kappa)
    assert 0 < scaled.beta_1 < 1
    assert 0 < scaled.beta_2 < 1


def test_to_first_order_the_rule_is_that_of_malladi_et_al():
    near = Averages(1 - 1e-5, 1 - 1e-7, 1e-8)
    scaled = scale_averages(near, 14)
    for beta, before in zip(scaled[:2], near[:2], strict=True):
        assert 1 - beta == pytest.approx(14 * (1 - before), rel=1e-4)
    assert scaled.epsilon == 1e-8 / math.sqrt(14)


def test_an_update_of_the_larger_batch_forgets_as_much_as_the_updates_it_replaces():
    average = larger = 1.0
    for _ in range(14):
        average *= ADAM.beta_2
    larger *= scale_averages(ADAM, 14).beta_2
    assert larger == pytest.approx(average)


@pytest.mark.parametrize(
    ("strategy", "batch", "update", "ratio"),
    [
        ("mirrored", "per-worker", 16, 2),
        ("parameter-server", "per-worker", 8, 1),
        ("mirrored", "global", 8, 1),
        ("parameter-server", "global", 4, 0.5),
    ],
)
def test_an_update_is_of_all_workers_or_of_one(strategy, batch, update, ratio):
    made = point(
        strategy=strategy, terms={"implementation": strategy}, train={"batch": batch}
    )
    assert (made.update_batch, made.batch_ratio) == (update, ratio)
