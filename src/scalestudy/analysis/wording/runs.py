"""Sentences on single runs: records that are left out, and qualities that say little."""

import math
from collections.abc import Sequence

from scalestudy.analysis.moving_statistics import falsify_quality
from scalestudy.analysis.runs import Run

MOST_NAMED = 3
"""Largest number of runs that are named with what is left out of them."""


def left_out(runs: Sequence[Run]) -> list[str]:
    """Sentences on records of runs that are damaged or differ from their checksums."""
    wrong = [run for run in runs if run.damage]
    sentences = []
    for run in wrong[:MOST_NAMED]:
        sentences.append(
            f"Records of {run.result.name} are left out: {'; '.join(run.damage)}."
            " See `scalestudy status --verify`."
        )
    more = len(wrong) - MOST_NAMED
    if more > 0:
        sentences.append(f"Records of {more} more runs are left out.")
    return sentences


def quality_warnings(runs: Sequence[Run]) -> list[str]:
    """One sentence for the run whose moving statistics hold most of their initial values, if too much."""
    most, share = None, -math.inf
    for run in runs:
        own = run.result.initial_statistics
        if own is not None and own > share:
            most, share = run.result, own
    if most is None or not falsify_quality(share):
        return []
    warning = f"{most.updates} updates: moving statistics still hold {100 * share:.0f} % of their initial values"
    remedy = 'Set batch_norm = "fresh" under [train].'
    if most.by_script:
        remedy = "Call torch.optim.swa_utils.update_bn before evaluating."
    return [f"Quality says little about {most.name}. {warning}. {remedy}"]
