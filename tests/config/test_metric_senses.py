"""Which direction of a metric is better."""

import pytest

from scalestudy.config.metric_senses import Sense, gain, known


@pytest.mark.parametrize(
    ("names", "sense"),
    [
        (
            "iou accuracy sparse_categorical_accuracy auc auc_1 f1 f1_score dice",
            ("higher", True, 1.0),
        ),
        (
            "mean_io_u mean_iou fbeta_score precision_2 Recall balanced-accuracy dice_coef",
            ("higher", True, 1.0),
        ),
        (
            "mse mean_squared_error MeanAbsoluteError loss huber mse_3",
            ("lower", False, None),
        ),
        ("r2_score cosine_similarity", ("higher", False, 1.0)),
        ("psnr", ("higher", False, None)),
        ("top_1_error_of_accuracy score mean accuracy_loss", Sense(None)),
    ],
)
def test_metrics_are_known_by_their_names_in_any_spelling(names, sense):
    assert {name: known(name) for name in names.split()} == dict.fromkeys(
        names.split(), sense
    )


def test_a_gain_is_a_change_to_the_better():
    assert gain(0.1, "higher") == gain(-0.1, "lower") == 0.1
