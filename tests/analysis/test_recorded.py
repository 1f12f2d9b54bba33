"""Metrics beyond the quality, as rows have them."""

import pytest

import synthetic
from scalestudy.analysis.recorded import metric_of, whole_metrics


def with_values(seed, **values):
    run = synthetic.run(seed=seed)
    result = run.result.model_copy(update={"validation": values, "class_names": ["cat", "dog"]})
    return synthetic.Run(result)


def test_values_of_classes_are_left_out():
    run = with_values(0, loss=0.1, iou=0.9, **{"iou_cat": 0.8, "iou_dog": 1.0})
    assert whole_metrics([run]) == ["loss", "iou"]
    assert whole_metrics([]) == []


def test_a_mean_has_an_interval_from_two_runs_on():
    runs = [with_values(seed, loss=value) for seed, value in enumerate((1.0, 3.0))]
    found = metric_of(runs, "loss")
    assert found.value == pytest.approx(2.0)
    assert found.low < 1.0 and found.high > 3.0
    assert metric_of(runs[:1], "loss").low is None


def test_what_a_run_lacks_is_not_known_of_its_row():
    runs = [with_values(0, loss=1.0), with_values(1)]
    assert metric_of(runs, "loss").value is None
    assert metric_of([with_values(0, loss=float("nan"))], "loss").value is None
