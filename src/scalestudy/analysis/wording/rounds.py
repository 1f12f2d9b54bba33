"""Sentences on rows that were not run together with the others."""

import math
from collections.abc import Mapping

from scalestudy.analysis.rounds import Rounds
from scalestudy.analysis.runs import Key
from scalestudy.analysis.variances import Values

MOST_NAMED = 4
"""Rows that a warning names."""


def warn_of_rows_apart(rounds: Rounds, values: Mapping[Key, Values]) -> list[str]:
    """Return a sentence on rows of our own that were run apart from the rest; empty if there are none."""
    alone = rounds.alone(values)
    if not alone:
        return []
    named = [key.label for key in alone[:MOST_NAMED]]
    labels = ", ".join(named)
    if len(alone) > MOST_NAMED:
        labels += f" and {len(alone) - MOST_NAMED} more"
    return [
        f"Not run in rounds with the other rows: {labels}. The machine may have been faster or slower in that"
        f" hour, so intervals of speed-ups allow for {math.sqrt(rounds.between.value):.0%} between rows. One"
        " more seed of all rows is run in a round."
    ]
