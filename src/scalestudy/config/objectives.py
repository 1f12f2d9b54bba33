"""Losses and metrics by name, and their parameters in a study file.

`tasks/` computes those that a study file can name. Those of other packages have no parameters.
"""

from collections.abc import Iterable, Sequence

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
    words = [term.name]
    for name, value in term.parameters.items():
        # `top_k` and `top_k(k=5)` are one metric.
        if value == METRICS[term.name][name].default:
            continue
        word = str(value)
        if isinstance(value, float):
            word = f"{value:g}"
        words.append(word)
    return "_".join(words)


def refuse_unfit(
    terms: Iterable[FormulaTerm],
    classes: int | None,
    where: str = "",
) -> None:
    """Refuse metrics that are meaningless for data of this number of classes; None if unknown.

    Raises:
        UserError: A metric does not fit; the error names it, `where` it is set, and a remedy.
    """
    if not classes:
        return
    for term in terms:
        if term.name != "top_k":
            continue
        default = METRICS["top_k"]["k"].default
        k = term.parameters.get("k", default)
        if isinstance(k, int) and k >= classes:
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
    # Under one name, one would replace the other in the results.
    names = [metric_key(metric_term(text)) for text in texts]
    for name in names:
        if names.count(name) > 1:
            raise WrongFormula("each metric once", f"Remove the second {name}.")
    return texts
