"""Sentences on the rows beside the chosen one: what more and what fewer workers would give."""

from collections.abc import Sequence

from scalestudy.analysis.decision import Decision
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling_model import Model
from scalestudy.analysis.wording.estimates import format_ends
from scalestudy.util import units


def next_smaller(decision: Decision) -> str:
    """Time and cost efficiency of the next smaller number of workers with the same strategy; "" if none."""
    choice, chosen = decision.choice, decision.price
    if choice is None or chosen is None or chosen.basis == "rate":
        return ""
    smaller = []
    for key in decision.prices:
        if key.series == choice.series and key.workers < choice.workers:
            smaller.append(key)
    if not smaller:
        return ""
    key = max(smaller, key=lambda key: key.workers)
    price = decision.prices[key]
    # The sentence on costs has compared the choice with the reference already.
    if key == decision.reference or price.efficiency.value is None:
        return ""
    slower = price.duration / chosen.duration
    return (
        f"Next smaller: {key.label} takes {units.duration(price.duration)}, {slower:.2f} times as long, at a"
        f" cost efficiency of {format_ends(price.efficiency)}."
    )


def beyond_the_edge(
    decision: Decision,
    rows: Sequence[Key],
    models: Sequence[Model],
) -> str:
    """What twice the workers are predicted to give, if the choice is the largest number measured; else ""."""
    choice = decision.choice
    if choice is None or decision.kind != "ask":
        return ""
    for key in rows:
        if key.variant == choice.variant and key.workers > choice.workers:
            return ""
    double = 2 * choice.workers
    for model in models:
        if model.series.key.series != choice.series:
            continue
        # A model that misses the measured times foretells nothing.
        if model.fit is None or model.lack_of_fit:
            break
        efficiency = model.predict(double).efficiency
        return (
            f"{choice.workers} workers are the largest number measured. For {double}, a scaling efficiency of"
            f" {format_ends(efficiency)} is predicted: measure it."
        )
    return f"{choice.workers} workers are the largest number measured: measure {double}, too."
