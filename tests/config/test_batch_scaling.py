import math

import pytest

from scalestudy.config.point import Averages, scaled_averages

ADAM = Averages(0.9, 0.999, 1e-8)


def test_one_reference_batch_changes_nothing():
    assert scaled_averages(ADAM, 1) == ADAM


@pytest.mark.parametrize("kappa", [0.5, 14, 64, 1024])
def test_every_batch_has_averages(kappa):
    scaled = scaled_averages(ADAM, kappa)
    assert 0 < scaled.beta_1 < 1
    assert 0 < scaled.beta_2 < 1


def test_to_first_order_the_rule_is_that_of_malladi_et_al():
    near = Averages(1 - 1e-5, 1 - 1e-7, 1e-8)
    scaled = scaled_averages(near, 14)
    for beta, before in zip(scaled[:2], near[:2], strict=True):
        assert 1 - beta == pytest.approx(14 * (1 - before), rel=1e-4)
    assert scaled.epsilon == 1e-8 / math.sqrt(14)


def test_an_update_of_the_larger_batch_forgets_as_much_as_the_updates_it_replaces():
    average = larger = 1.0
    for _ in range(14):
        average *= ADAM.beta_2
    larger *= scaled_averages(ADAM, 14).beta_2
    assert larger == pytest.approx(average)
