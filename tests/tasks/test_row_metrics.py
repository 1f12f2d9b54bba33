"""F1Score, FBetaScore and R2Score of Keras, built ahead, as scikit-learn's for class indices and masks."""

import keras
import numpy as np
import pytest

from scalestudy.tasks.row_metrics import with_rows

pytestmark = pytest.mark.engine
DRAW = np.random.default_rng(5)
LABELS = DRAW.integers(0, 3, 40)
OUTPUTS = DRAW.random((40, 3), np.float32)
BEST = OUTPUTS.argmax(-1)


def reference():
    """Metrics of scikit-learn; importing it is slow."""
    from sklearn import metrics

    return metrics


def value_in_parts(metric, targets, outputs, ignore=None):
    """Return the metric of two workers: what each adds to the initial variables, summed."""
    shape = (None, *outputs.shape[1:])
    (wrapped,) = with_rows(
        {"quality": metric}, keras.KerasTensor(shape), ignore
    ).values()
    start = [keras.ops.convert_to_tensor(variable) for variable in wrapped.variables]
    assert len(start) > 1
    total = list(start)
    for rows in (slice(0, 25), slice(25, None)):
        state = wrapped.stateless_update_state(start, targets[rows], outputs[rows])
        total = [
            whole + part - first
            for whole, part, first in zip(total, state, start, strict=True)
        ]
    return float(wrapped.stateless_result(total))


def test_f1_of_class_indices_is_that_of_scikit_learn():
    expected = reference().f1_score(LABELS, BEST, average="macro")
    assert value_in_parts(keras.metrics.F1Score(), LABELS, OUTPUTS) == pytest.approx(
        expected, rel=1e-5
    )
    assert value_in_parts(
        keras.metrics.F1Score("macro"), LABELS, OUTPUTS
    ) == pytest.approx(expected, rel=1e-5)


def test_fbeta_of_rows_of_0_and_1_is_that_of_scikit_learn():
    rows = np.eye(3, dtype=np.float32)[LABELS]
    expected = reference().fbeta_score(LABELS, BEST, beta=2, average="micro")
    metric = keras.metrics.FBetaScore("micro", beta=2.0)
    assert value_in_parts(metric, rows, OUTPUTS) == pytest.approx(expected, rel=1e-5)


def test_f1_of_one_unit_takes_labels_without_an_axis():
    labels, outputs = LABELS % 2, OUTPUTS[:, :1]
    expected = reference().f1_score(labels, outputs[:, 0] > 0.5)
    metric = keras.metrics.F1Score("macro", threshold=0.5)
    assert value_in_parts(metric, labels, outputs) == pytest.approx(expected, rel=1e-5)


def test_f1_of_masks_leaves_ignored_pixels_out():
    labels = LABELS.reshape(40, 1, 1).repeat(2, 1)
    outputs = OUTPUTS.reshape(40, 1, 1, 3).repeat(2, 1)
    labels = labels.copy()
    labels[:, 1] = 255
    expected = reference().f1_score(LABELS, BEST, average="macro")
    metric = keras.metrics.F1Score("macro")
    assert value_in_parts(metric, labels, outputs, ignore=255) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize("axes", [1, 2])
def test_r2_takes_targets_with_or_without_an_axis(axes):
    targets = DRAW.normal(size=(40, 1)[:axes]).astype(np.float32)
    outputs = targets.reshape(40, 1) + 0.3 * DRAW.normal(size=(40, 1)).astype(
        np.float32
    )
    expected = reference().r2_score(targets.reshape(-1), outputs[:, 0])
    assert value_in_parts(keras.metrics.R2Score(), targets, outputs) == pytest.approx(
        expected, rel=1e-4
    )


def test_each_class_of_an_f1_without_average_has_its_value():
    (wrapped,) = with_rows(
        {"f1": keras.metrics.F1Score()}, keras.KerasTensor((None, 3)), None
    ).values()
    wrapped.update_state(LABELS, OUTPUTS)
    expected = reference().f1_score(LABELS, BEST, average=None)
    assert list(wrapped.parts().values()) == pytest.approx(expected.tolist(), rel=1e-5)


def test_other_metrics_stay_as_they_are():
    metric = keras.metrics.BinaryAccuracy()
    assert with_rows({"a": metric}, keras.KerasTensor((None, 1)), None)["a"] is metric
