"""Sentences on scaling models: their terms, how well they fit, and the limit of speed-up."""

from scalestudy.analysis.scaling_model import TIMES, Model
from scalestudy.util import units
from scalestudy.util.text import plural

NAMES = {
    "fixed": "a part that does not shrink with the workers",
    "constant": "communication that does not grow",
    "ring": "ring communication",
    "log": "communication or waiting that grows with log₂ n",
    "linear": "communication with each worker in turn",
    "second node": "communication between nodes",
}
"""Meaning of the terms other than computation."""


def model_sentences(model: Model) -> list[str]:
    """Sentences on the limit of speed-up, lack of fit, and numbers of workers that are left out."""
    if model.fit is None:
        return []
    sentences, limit = [], model.limit
    if limit.value is not None and limit.low is not None and limit.high is not None:
        relative = ""
        if model.reference > 1:
            relative = f" (relative to {model.reference} workers)"
        sentences.append(
            f"If times continue as measured, speed-up{relative} stays below"
            f" {units.three_digits(limit.value)} (95 % interval {units.three_digits(limit.low)} to"
            f" {units.three_digits(limit.high)}) for any number of workers."
        )
    if model.lack_of_fit:
        count, off = model.fit.worst
        sentences.append(
            f"The scaling model misses something: it is off by {100 * abs(off):.2g} % at {_workers(count)},"
            " so its predictions are unreliable."
        )
    if model.series.others:
        others = ", ".join(map(str, model.series.others))
        sentences.append(
            "Left out of the scaling model, because they processed a different number of samples:"
            f" {others} workers."
        )
    return sentences


def describe_fit(model: Model, name: str) -> str:
    """The model, its terms, and how well it fits. `name` is the name of the series."""
    fit, series = model.fit, model.series
    assert fit is not None
    of = ""
    if series.of != "training":
        of = f" ({TIMES[series.of].lower()})"
    parts = []
    for part in fit.parts:
        if part in NAMES:
            parts.append(NAMES[part])
    consists = "with parallel work only"
    if parts:
        consists = f"with {' and '.join(parts)}"
    count, off = fit.worst
    held = "Mean times agree with it."
    # Less is rounding.
    if abs(off) >= 1e-6:
        held = f"Mean times deviate from it by at most {100 * abs(off):.2g} % (at {_workers(count)})."
    return f"{name}: {fit.written}{of}, {consists}. {held}"


def describe_work(model: Model) -> str:
    """What is equal of all trainings, and how the number of updates changes."""
    series = model.series
    if series.of != "training" or not series.samples:
        return "strong scaling, assuming that every run did the same work, which is not recorded"
    text = f"strong scaling: every training processes {series.samples:,} samples"
    # Of a global batch that follows no rule, nothing is said about updates.
    if len(series.different) < 2 or series.update is None:
        return text
    if series.update == "growing":
        return (
            f"{text}, with fewer updates on more workers, since the global batch grows"
        )
    return f"{text}, with the same number of updates, since the global batch is fixed"


def _workers(count: int) -> str:
    return f"{count} {plural('worker', count)}"
