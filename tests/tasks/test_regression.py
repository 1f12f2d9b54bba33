import numpy as np
import pytest

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("name", ["mae", "rmse", "r2"])
def test_it_is_scikit_learns_whatever_the_batches(name):
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    from scalestudy.tasks.metrics import OF_NUMBERS

    reference = {"mae": mean_absolute_error, "rmse": root_mean_squared_error, "r2": r2_score}[name]
    rng = np.random.default_rng(0)
    true = rng.normal(100, 3, 57)
    predicted = true + rng.normal(0, 1, 57)
    for batches in (1, 2, 19):
        metric = OF_NUMBERS[name]()
        for part in np.array_split(np.arange(57), batches):
            metric.update_state(true[part], predicted[part, None])
        assert float(metric.result()) == pytest.approx(reference(true, predicted), rel=1e-6)


def test_of_equal_targets_there_is_nothing_to_explain():
    from scalestudy.tasks.regression import R2

    metric = R2()
    metric.update_state(np.ones(3), np.zeros((3, 1)))
    assert float(metric.result()) == 0
