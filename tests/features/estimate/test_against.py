"""An estimate beside what was measured."""

import made
import pytest
from foreseen_studies import unet

from scalestudy.features.estimate.against import held_against, mean_factor
from scalestudy.analysis.table import summarise


@pytest.fixture(scope="module")
def held():
    return held_against(unet(), summarise(made.published()))


def test_every_measured_row_with_several_workers_is_held_against_what_was_foreseen(held):
    assert len(held) == 14
    assert {each.key.workers for each in held} == {2, 4, 6, 8, 10, 12, 14}
    for each in held:
        assert each.seconds == pytest.approx(
            made.U_NET[each.key.workers][each.key.strategy == "horovod" and 3]
        )


def test_off_by_is_the_share_by_which_the_measured_time_is_longer(held):
    last = next(each for each in held if each.key.label == "native on 14 workers")
    assert last.off == pytest.approx(718 / last.foreseen.training_seconds.value - 1)
    assert last.off > 0.2 and not last.inside


def test_the_mean_factor_counts_too_long_and_too_short_alike(held):
    one = held[0]
    twice = type(one)(one.key, one.foreseen, 2 * one.foreseen.training_seconds.value, None)
    half = type(one)(one.key, one.foreseen, 0.5 * one.foreseen.training_seconds.value, None)
    assert mean_factor([twice, half]) == pytest.approx(2.0)


def test_rows_that_shared_cores_or_were_not_foreseen_are_left_out():
    rows = summarise([*made.oversubscribed(), made.run("horovod", 3)])
    assert [each.key.workers for each in held_against(unet(), rows)] == [2]


@pytest.mark.parametrize("least", [2, 14], ids=["several counts", "one large job"])
def test_without_a_one_worker_run_a_measured_speed_up_is_over_the_foreseen_time_of_one(least):
    """Not over the fewest workers, as the study's own is: that would lie far below what was foreseen."""
    estimate = unet()
    runs = [run for run in made.published() if run.result.workers >= least]
    runs = [run for run in runs if run.result.strategy == "horovod"]
    (series,) = (each for each in estimate.series if each.strategy == "horovod")
    held = held_against(estimate, summarise(runs))
    assert held
    for each in held:
        assert each.speedup == pytest.approx(series.points[0].training_seconds.value / each.seconds)
        assert each.speedup == pytest.approx(made.U_NET[each.key.workers][4], rel=0.1)
