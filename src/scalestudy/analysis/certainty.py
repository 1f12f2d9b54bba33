"""Which rows' speed-ups are too uncertain to decide by."""

from scalestudy.analysis.table import Row

TOO_WIDE = 2.0
"""Factor below the estimate at which an interval of a speed-up ends that tells too little."""


def is_undecided(row: Row, target: float) -> bool:
    """Whether a row may well keep `target` efficiency, and as well be of no use.

    That is: its interval reaches `target`, and also half of what was measured, or no speed-up at all. Rows
    without an interval are single runs, on which any advice is provisional.
    """
    speed, reached = row.speed.steady, row.efficiency.high
    if row.is_baseline or speed.value is None or speed.low is None or reached is None:
        return False
    return reached >= target and (speed.low <= 1 or speed.low * TOO_WIDE < speed.value)
