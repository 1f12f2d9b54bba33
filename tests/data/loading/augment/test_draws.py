import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scalestudy.data.loading.augment.parameters import uniforms


@given(st.integers(0, 2**36), st.integers(0, 10**6), st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_a_rows_numbers_do_not_depend_on_the_rows_beside_it(seed, epoch, rows):
    together = uniforms(seed, epoch, np.array(rows), 3)
    for row, numbers in zip(rows, together, strict=True):
        assert uniforms(seed, epoch, np.array([row]), 3).tolist() == [numbers.tolist()]
    assert ((together > 0) & (together < 1)).all()


def test_seeds_epochs_rows_and_places_draw_apart():
    drawn = [uniforms(seed, epoch, np.arange(50), 4).ravel() for seed in range(3) for epoch in range(3)]
    assert len(np.unique(np.concatenate(drawn))) == 9 * 200


def test_the_numbers_are_uniform_and_uncorrelated():
    numbers = uniforms(1, 2, np.arange(20_000), 4)
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 0.001
    beside = [np.corrcoef(numbers[:, 0], numbers[:, 1]), np.corrcoef(numbers[:-1, 0], numbers[1:, 0])]
    beside.append(np.corrcoef(numbers[:, 0], uniforms(1, 3, np.arange(20_000), 1)[:, 0]))
    assert all(abs(each[0, 1]) < 0.03 for each in beside)


def test_the_numbers_are_the_same_on_every_machine_and_in_every_release():
    assert uniforms(7, 3, np.array([0, 41]), 2).round(12).tolist() == [
        [0.284794570576, 0.223446919839],
        [0.023072698597, 0.268476807189],
    ]
