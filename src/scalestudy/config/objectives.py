"""Losses and metrics by name: their parameters in a study file, and which direction is better.

`tasks/` computes those that a study file can name. Those of other packages have no parameters.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from scalestudy.config.formula import (
    FormulaTerm,
    Range,
    WrongFormula,
    parse_call,
    parse_sum,
)
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

LOSSES: dict[str, dict[str, Range]] = {
    "bce": {},
    "cross_entropy": {},
    "focal": {"gamma": Range(2.0, 0, 10)},
    "dice": {"smooth": Range(1.0)},
} | {name: {} for name in Registry("scalestudy.losses").names()}
"""Each loss is in [0, ∞), one number for every sample."""
WEIGHTED = ("bce", "cross_entropy", "focal")
"""Losses that accept class weights."""
METRICS: dict[str, dict[str, Range]] = {
    "iou": {},
    "dice": {},
    "accuracy": {},
    "top_k": {"k": Range(5, 1, 1000)},
    "precision": {},
    "recall": {},
    "f1": {},
} | {name: {} for name in Registry("scalestudy.metrics").names()}


def loss_terms(text: str) -> tuple[FormulaTerm, ...]:
    """Parse a sum of losses; raises WrongFormula."""
    return parse_sum(text, LOSSES, "loss")


def metric_term(text: str) -> FormulaTerm:
    """Parse a metric; raises WrongFormula."""
    return parse_call(text, METRICS, "metric")


def metric_key(term: FormulaTerm) -> str:
    """The metric's name in results, with parameters that are not the default: `f1`, `top_k_3`."""
    ranges = METRICS[term.name]
    given = [
        value
        for name, value in term.parameters.items()
        if value != ranges[name].default
    ]
    return "_".join(
        [
            term.name,
            *(
                f"{value:g}" if isinstance(value, float) else str(value)
                for value in given
            ),
        ]
    )


def refuse_unfit(
    terms: Iterable[FormulaTerm], classes: int | None, where: str = ""
) -> None:
    """Refuse metrics that are meaningless for data of this number of classes; None if unknown.

    Raises:
        UserError: A metric does not fit; the error names it, `where` it is set, and a remedy.
    """
    for term in terms:
        k = (
            term.parameters.get("k", METRICS["top_k"]["k"].default)
            if term.name == "top_k"
            else 0
        )
        if classes and isinstance(k, int) and k >= classes:
            raise UserError(
                f"k below the {classes} classes for top_k, which would always be 1",
                f"{k}{where}",
                f"Write top_k(k={classes - 1}) or less, or another metric.",
            )


def refuse_unweighted(terms: Sequence[FormulaTerm], where: str = "") -> None:
    """Refuse class weights for a sum of losses none of which accepts them.

    Raises:
        UserError: The error lists the losses that accept class weights.
    """
    if not any(term.name in WEIGHTED for term in terms):
        raise unweighted(" + ".join(map(str, terms)), where)


def unweighted(loss: str, where: str = "") -> UserError:
    """An error: class weights were requested, but this loss does not accept them."""
    return UserError(
        f"a loss that takes class weights ({', '.join(WEIGHTED)}, or a function of the data) for "
        "train.class_weights",
        f"the loss {loss}{where}",
        f'Name another under [train], as loss = "{WEIGHTED[1]}", or remove class_weights.',
    )


def check_loss(text: str) -> str:
    """Return the text if it is a sum of losses; raises WrongFormula otherwise."""
    loss_terms(text)
    return text


def check_metrics(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts if all metrics differ; raises WrongFormula otherwise."""
    names = [metric_key(metric_term(text)) for text in texts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise WrongFormula("each metric once", f"Remove the second {twice}.")
    return texts


Better = Literal["higher", "lower"]


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


UNKNOWN = Sense(None)

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


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"_\d+$", "", name.lower()))


_TABLE = (
    {
        _squeeze(name): Sense("higher", bounded=True, whole=1.0)
        for name in _SHARES.split()
    }
    | {
        _squeeze(name): Sense("higher", bounded=False, whole=1.0)
        for name in _SIGNED.split()
    }
    | {_squeeze(name): Sense("higher", bounded=False) for name in _GAINS.split()}
    | {
        _squeeze(name): Sense("lower", bounded=True, whole=1.0)
        for name in _ERRORS.split()
    }
    | {_squeeze(name): Sense("lower", bounded=False) for name in _LOSSES.split()}
)


def known(name: str) -> Sense:
    """Look up a metric in any spelling: `MeanIoU`, `mean_io_u`, `mean_io_u_1`; else `UNKNOWN`."""
    return _TABLE.get(_squeeze(name), UNKNOWN)


def gain(change: float, better: Better) -> float:
    """Change of a metric, with the sign such that larger is better."""
    return change if better == "higher" else -change


def class_suffixes(class_names: Sequence[str]) -> list[str]:
    """A word for each class for use in column names; repeated words get the class index."""
    words = [re.sub(r"\W+", "_", name).strip("_") for name in class_names]
    unique = (word and words.count(word) == 1 for word in words)
    return [
        word if is_unique else f"{word}_{index}".lstrip("_")
        for index, (word, is_unique) in enumerate(zip(words, unique, strict=True))
    ]


def class_keys(metric: str, class_names: Sequence[str]) -> list[str]:
    """Names of the metric's values for each class, in results."""
    return [f"{metric}_{word}" for word in class_suffixes(class_names)]


LARGEST_INITIAL_SHARE = 0.01
"""Share of their initial values above which moving statistics falsify a measured quality."""


def warning_of(share: float | None, updates: int | None) -> str | None:
    """Return a sentence if moving statistics hold too large a `share` of their initial values, else None."""
    if share is None or share <= LARGEST_INITIAL_SHARE:
        return None
    return f"{updates} updates: moving statistics still hold {100 * share:.0f} % of their initial values"
