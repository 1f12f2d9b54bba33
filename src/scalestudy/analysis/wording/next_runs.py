"""Words for which runs a study needs next, or why it needs none."""

from scalestudy.analysis.next_runs import Why, WhyEnded, WhyNext

FORMS: dict[WhyNext | WhyEnded, str] = {
    "times-first": "the times of all rows come first",
    "disturbed": "other programs used the cores while they were timed",
    "efficiency-unsettled": "their cost efficiency is not settled",
    "chosen-by-time": "{rows} is chosen by its time and needs one training",
    "seeds-do-not-tell": "{seeds} seeds do not tell whether {rows} learns as well",
    "fastest-left": "{rows} is the fastest row left that may qualify",
    "always-disturbed": "another study used the cores of {rows} whenever it was timed",
    "nothing-timed": "no row could be timed",
    "times-too-uncertain": "the times of {rows} are too uncertain",
    "efficiency-open": "it is open whether {rows} keeps a cost efficiency of {target:g}",
    "times-settled": "the times of all rows that may be chosen are settled",
    "reference-fails": "trainings of {rows} fail, which qualities are compared with",
    "choice-fails": "trainings of {rows} fail",
    "beyond-budget-or-fails": "what {rows} still needs is beyond the budget, or its trainings fail",
    "training-beyond-budget": "the training that {rows} needs is beyond the budget",
    "seeds-spread-too-far": (
        "it cannot be settled for this budget whether {rows} learns as well: as far as seeds spread, that takes"
        " about {seeds} seeds of each row"
    ),
    "qualifies": "{rows} is the fastest row shown to qualify",
}
"""The clause for each reason, with the names of what `Why` holds."""


def describe_why(why: Why) -> str:
    """Why runs are next, or none are, as a clause."""
    labels = [key.label for key in why.rows]
    clause = FORMS[why.kind].format(
        rows=", ".join(labels),
        seeds=why.seeds,
        target=why.target,
    )
    if why.most_seeds is not None:
        clause += f", more than the {why.most_seeds} that may be run"
    return clause
