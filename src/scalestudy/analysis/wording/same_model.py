"""Sentences on runs that are compared but did not train the same model."""

from scalestudy.analysis.same_model import Unlike, UnlikeModels

MOST_NAMED = 4
"""Largest number of models that a sentence lists."""
REMEDY = (
    "The task depends on more than its sources, such as a file that it reads: restore it, and repeat the runs"
    " in another folder (--out)."
)


def describe_unlike(unlike: Unlike) -> str:
    """A sentence on runs that are unlike, and one on what to do."""
    if isinstance(unlike, UnlikeModels):
        models = "; ".join(unlike.models[:MOST_NAMED])
        left = len(unlike.models) - MOST_NAMED
        if left > 0:
            models += f"; and {left} more"
        return f"Runs with the same settings trained different models ({models}), which are kept apart. {REMEDY}"
    runs = " and ".join(unlike.runs[:2])
    return f"{runs} have the same seed but began with different weights. {REMEDY}"
