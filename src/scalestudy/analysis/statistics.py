"""Means of a row's runs and contrasts of two rows, with their intervals.

Runs come in randomised blocks. Those of one seed form a block: they share split, initial weights and hour.
Comparing rows within blocks cancels drift and the effect of the seed (Fisher, "The design of experiments",
1935; Montgomery, "Design and analysis of experiments", chapter 4).
"""

import math
from collections.abc import Sequence
from statistics import fmean

from scalestudy.analysis.estimate import NOTHING, Contrast, Estimate, student
from scalestudy.analysis.scales import Scale
from scalestudy.analysis.variances import (
    Design,
    Values,
    Variance,
    add_variances,
    moderate,
    run_variance,
)


def mean(
    values: Sequence[float],
    scale: Scale,
    design: Design | None = None,
) -> Estimate:
    """Mean of runs with Student's interval: geometric on the logarithmic scale, else arithmetic.

    If a value is not finite (a diverged run), there is no mean. If a value lies outside the scale (a
    throughput of 0), the mean is arithmetic and has no interval.
    """
    # A mean over the others would hide a run that diverged.
    if not values or not all(map(math.isfinite, values)):
        return NOTHING
    if not all(map(scale.holds, values)):
        return Estimate(fmean(values))
    centre = scale.centre(values)
    on_scale = [*map(scale.forward, values)]
    single = run_variance(on_scale, design)
    if single is None:
        return Estimate(centre)
    error = math.sqrt(single.value / len(values))
    reach = student(single.freedom) * error
    return Estimate(centre, *scale.ends(centre, reach))


def contrast(
    ours: Values,
    theirs: Values,
    design: Design | None = None,
    their_design: Design | None = None,
    between: Variance | None = None,
) -> Contrast:
    """Mean of one row minus the mean of another: within blocks if possible, else unpaired.

    Rows are paired if they share two blocks, or one if a row has no other and the residual is known.

    Args:
        ours: Values of the first row, on the scale of the interval.
        theirs: Values of the second row.
        design: Design of the first row; if None, its own variance is used.
        their_design: Design of the second row. If the designs differ, the degrees of freedom are those of the
            pairs or, unpaired, Welch's (Biometrika 34, 1947).
        between: Variance of what all runs of a row share, such as its hour, if the rows were not run
            together; see `analysis.rounds`.
    """
    same_design = residual = None
    if design is not None and design is their_design:
        same_design, residual = design, design.residual
    changes = []
    for block, value in ours.items():
        if block in theirs:
            changes.append(value - theirs[block])
    pairs = len(changes)
    single_pair = pairs == 1 and min(len(ours), len(theirs)) == 1
    if pairs > 1 or (single_pair and residual is not None):
        # A difference has the variance of two runs.
        single = moderate(changes, residual, per_run=2.0)
        assert single is not None
        error = math.sqrt(2 * single.value / pairs)
        return Contrast(fmean(changes), error, single.freedom, pairs)
    # Without pairs, with one that would leave other runs out, or with one and nothing that shows how runs spread.
    our_mean = fmean(ours.values())
    their_mean = fmean(theirs.values())
    change = our_mean - their_mean
    first = run_variance([*ours.values()], design)
    second = run_variance([*theirs.values()], their_design)
    # Single runs, and no other row that shows how runs spread.
    if first is None or second is None:
        return Contrast(change)
    of_ours = Variance(first.value / len(ours), first.freedom)
    of_theirs = Variance(second.value / len(theirs), second.freedom)
    total = add_variances(of_ours, of_theirs)
    if same_design:
        # Both variances contain the common one, which has no more degrees than it was estimated with.
        freedom = min(total.freedom, same_design.within.freedom)
        total = total._replace(freedom=freedom)
    if between is not None:
        # Each row has its own hour.
        hours = Variance(2 * between.value, between.freedom)
        total = add_variances(total, hours)
    return Contrast(change, math.sqrt(total.value), total.freedom)
