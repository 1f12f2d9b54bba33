"""Values of a row beyond its quality: every metric that its runs have recorded over the validation set."""

from collections.abc import Sequence
from math import isfinite

from scalestudy.analysis.blocks import mean
from scalestudy.analysis.runs import Run
from scalestudy.analysis.scales import quality_scale
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.study.metrics import class_keys, known


def whole_metrics(runs: Sequence[Run]) -> list[str]:
    """Names of the values that are not of one class, as they were first recorded."""
    names: dict[str, None] = {}
    for run in runs:
        values = run.result.validation
        of_classes = {key for name in values for key in class_keys(name, run.result.class_names)}
        names |= dict.fromkeys(name for name in values if name not in of_classes)
    return list(names)


def metric_of(runs: Sequence[Run], name: str) -> Estimate:
    """Mean of a metric over a row's runs, its interval from their own spread; nothing where one lacks it."""
    values = [run.result.validation.get(name) for run in runs]
    found = [value for value in values if value is not None and isfinite(value)]
    if len(found) < len(values) or not found:
        return NOTHING
    return mean(found, quality_scale(known(name).bounded, found))
