"""The losses and metrics that a study file can name, with their parameters; `tasks/` computes them.

Those of other packages have none.
"""

from collections.abc import Iterable, Sequence

from scalestudy.config.formula import FormulaTerm, Range, WrongFormula, parsed_call, parsed_sum
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

_SMOOTH = Range(1.0)
_SHARE = Range(0.0, 0, 0.5)

LOSSES: dict[str, dict[str, Range]] = {
    "bce": {"label_smoothing": _SHARE},
    "cross_entropy": {"label_smoothing": _SHARE},
    "focal": {"gamma": Range(2.0, 0, 10)},
    "dice": {"smooth": _SMOOTH},
    "jaccard": {"smooth": _SMOOTH},
    "tversky": {"alpha": Range(0.3, 0, 10), "beta": Range(0.7, 0, 10), "smooth": _SMOOTH},
} | {name: {} for name in Registry("scalestudy.losses").names()}
"""Each loss is in [0, ∞), one number for every sample."""
WEIGHTED = ("bce", "cross_entropy", "focal")
"""Losses that accept class weights."""
METRICS: dict[str, dict[str, Range]] = {
    "iou": {},
    "dice": {},
    "accuracy": {},
    "top_k": {"k": Range(5, 1, 1000)},
    "balanced_accuracy": {},
    "precision": {},
    "recall": {},
    "f1": {},
    "auroc": {},
    "average_precision": {},
    "ece": {},
    "brier": {},
    "confusion_matrix": {},
} | {name: {} for name in Registry("scalestudy.metrics").names()}
MATRICES = ("confusion_matrix",)
"""Metrics that are not one number and cannot be the quality."""


def loss_terms(text: str) -> tuple[FormulaTerm, ...]:
    """Parse a sum of losses; raises WrongFormula."""
    return parsed_sum(text, LOSSES, "loss")


def metric_term(text: str) -> FormulaTerm:
    """Parse a metric; raises WrongFormula."""
    return parsed_call(text, METRICS, "metric")


def metric_key(term: FormulaTerm) -> str:
    """The metric's name in results, with parameters that are not the default: `f1`, `top_k_3`."""
    ranges = METRICS[term.name]
    given = [value for name, value in term.parameters.items() if value != ranges[name].default]
    return "_".join(
        [term.name, *(f"{value:g}" if isinstance(value, float) else str(value) for value in given)]
    )


def refuse_unfit(terms: Iterable[FormulaTerm], classes: int | None, where: str = "") -> None:
    """Refuse metrics that are meaningless for data of this number of classes; None if unknown.

    Raises:
        UserError: A metric does not fit; the error names it, `where` it is set, and a remedy.
    """
    for term in terms:
        k = term.parameters.get("k", METRICS["top_k"]["k"].default) if term.name == "top_k" else 0
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


def checked_loss(text: str) -> str:
    """Return the text if it is a sum of losses; raises WrongFormula otherwise."""
    loss_terms(text)
    return text


def checked_metrics(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts if all metrics differ and the first is one number; raises WrongFormula otherwise."""
    terms = [metric_term(text) for text in texts]
    names = [metric_key(term) for term in terms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise WrongFormula("each metric once", f"Remove the second {twice}.")
    if terms and terms[0].name in MATRICES:
        expected = "a metric that is one number first, since it is the quality"
        raise WrongFormula(expected, f"Put another before {terms[0].name}.")
    return texts
