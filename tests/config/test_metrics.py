import pytest

from scalestudy.config.objectives import UNKNOWN, class_keys, gain, known


@pytest.mark.parametrize(
    "name",
    [
        *("iou", "accuracy", "sparse_categorical_accuracy", "auc", "auc_1", "f1", "f1_score", "dice"),
        *("mean_io_u", "mean_iou", "fbeta_score", "precision_2", "Recall", "balanced-accuracy", "dice_coef"),
    ],
)
def test_metrics_between_0_and_1_are_known_by_their_names(name):
    assert known(name) == ("higher", True, 1.0)


@pytest.mark.parametrize("name", ["mse", "mean_squared_error", "MeanAbsoluteError", "loss", "huber", "mse_3"])
def test_errors_and_losses_are_better_lower_and_not_bounded(name):
    assert known(name) == ("lower", False, None)


@pytest.mark.parametrize(("name", "whole"), [("r2_score", 1.0), ("psnr", None), ("cosine_similarity", 1.0)])
def test_others_are_better_higher_and_not_bounded(name, whole):
    assert known(name) == ("higher", False, whole)


@pytest.mark.parametrize("name", ["top_1_error_of_accuracy", "score", "mean", "", "accuracy_loss"])
def test_of_other_names_nothing_is_known(name):
    assert known(name) == UNKNOWN


def test_a_gain_is_a_change_to_the_better():
    assert gain(0.1, "higher") == gain(-0.1, "lower") == 0.1


def test_values_of_classes_go_by_names_that_can_be_a_column():
    result = class_keys("iou", ("background", "cell nucleus (dead)"))
    assert result == ["iou_background", "iou_cell_nucleus_dead"]


def test_classes_of_one_name_or_none_are_told_apart_by_their_index():
    assert class_keys("f1", ("a b", "a-b", "c", "??")) == ["f1_a_b_0", "f1_a_b_1", "f1_c", "f1_3"]
