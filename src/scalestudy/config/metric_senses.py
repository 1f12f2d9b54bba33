"""Which direction of a metric is better, and its scale, by the metric's name."""

import re
from functools import cache
from typing import Literal, NamedTuple

Better = Literal["higher", "lower"]
_SHARES = """
    accuracy acc binary_accuracy categorical_accuracy sparse_categorical_accuracy balanced_accuracy
    top_k_categorical_accuracy sparse_top_k_categorical_accuracy auc
    precision recall precision_at_recall recall_at_precision sensitivity specificity
    sensitivity_at_specificity specificity_at_sensitivity f1 f2 f1_score f2_score fbeta fbeta_score
    iou binary_iou mean_iou miou one_hot_iou one_hot_mean_iou jaccard jaccard_index
    dice dice_coef dice_coefficient dice_score dsc
    boundary_f1 object_ap top_k auroc average_precision
"""
_ERRORS = (
    "ece brier error error_rate err top1_error top5_error misclassification wer cer"
)
_SIGNED = (
    "cosine_similarity concordance_correlation pearson_correlation r2 r2_score ssim"
)
"""At most 1, and below 0 for bad models."""
_GAINS = "true_positives true_negatives psnr"
_LOSSES = """
    loss dice_loss huber hinge squared_hinge categorical_hinge log_cosh log_cosh_error poisson
    kl_divergence kld binary_crossentropy bce categorical_crossentropy sparse_categorical_crossentropy
    cross_entropy binary_focal_crossentropy categorical_focal_crossentropy
    mean_absolute_error mae mean_absolute_percentage_error mape mean_squared_error mse
    mean_squared_logarithmic_error msle root_mean_squared_error rmse
    false_positives false_negatives perplexity
"""


class Sense(NamedTuple):
    """Which direction of a metric is better, and its scale; None if unknown.

    Attributes:
        bounded: Whether it lies in [0, 1], or in [0, 100] as a percentage.
        whole: What a perfect model reaches if more is better: 1, or 100 in per cent; if less is better, what
            its complement reaches. None for metrics without such a scale, as of losses.
    """

    better: Better | None
    bounded: bool | None = None
    whole: float | None = None


@cache
def _senses() -> dict[str, Sense]:
    """Return the senses of all known metrics by their squeezed names."""
    kinds = (
        (_SHARES, Sense("higher", bounded=True, whole=1.0)),
        (_SIGNED, Sense("higher", bounded=False, whole=1.0)),
        (_GAINS, Sense("higher", bounded=False)),
        (_ERRORS, Sense("lower", bounded=True, whole=1.0)),
        (_LOSSES, Sense("lower", bounded=False)),
    )
    senses = {}
    for names, sense in kinds:
        for name in names.split():
            senses[_squeeze(name)] = sense
    return senses


def _squeeze(name: str) -> str:
    # Keras numbers repeated metrics of a model: `mean_io_u_1` is another `mean_io_u`.
    unnumbered = re.sub(r"_\d+$", "", name.lower())
    # `MeanIoU`, `mean_io_u` and `mean-iou` are one.
    return re.sub(r"[^a-z0-9]", "", unnumbered)


def known(name: str) -> Sense:
    """Look up a metric in any spelling: `MeanIoU`, `mean_io_u`, `mean_io_u_1`; else `Sense(None)`."""
    return _senses().get(_squeeze(name), Sense(None))


def gain(change: float, better: Better) -> float:
    """Change of a metric, with the sign such that larger is better."""
    if better == "higher":
        return change
    return -change
