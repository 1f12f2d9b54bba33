"""The rows beside the chosen one that were faster and not chosen.

Whoever defends a choice is asked about its neighbours, not about the fastest of all rejected rows.
"""

from scalestudy.analysis.decision import Decision, PassedOver


def nearest_passed_over(decision: Decision, most: int) -> list[PassedOver]:
    """Faster rows that were not chosen: those on as many workers and on the next larger number.

    If there are none, it is the nearest of the others. At most `most` rows, those with the fewest workers
    first.
    """
    choice = decision.choice
    if choice is None:
        return []
    alike, larger = [], []
    for row in decision.passed_over:
        if row.key.variant == choice.variant:
            alike.append(row)
            if row.key.workers > choice.workers:
                larger.append(row.key.workers)
    counts = {choice.workers, min(larger, default=choice.workers)}
    near = [row for row in alike if row.key.workers in counts]
    if near:
        return near[:most]
    return sorted(decision.passed_over, key=lambda row: row.key.workers)[:most]
