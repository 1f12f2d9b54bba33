"""Whether times break where the second node begins: exchange leaves the node, and takes longer from there on.

The place of the break is known (the first count over several nodes), so it is Chow's test ("Tests of equality
between sets of coefficients in two linear regressions", Econometrica 28, 1960) with one coefficient that may
differ: seconds that each update takes longer. It is accepted only if the F test at 5 % supports it and the
law with it foretells counts left out so much better that it would be chosen among laws (`choose`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scalestudy.analysis.scaling.choose import FOR_MORE, Choice, beats, foretelling_error
from scalestudy.analysis.scaling.fit import LEVEL, Fit, fit
from scalestudy.analysis.scaling.law import Law, Term
from scalestudy.analysis.scaling.series import Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ON_EACH_SIDE = 2
"""Different counts that a break needs on one node, and on several."""


@dataclass(frozen=True)
class SecondNode:
    """What is known of a break at the second node.

    Attributes:
        at: Fewest workers that were on several nodes.
        sentence: What was found, in words.
        fit: The law with the break, where it was accepted.
        per_update: Seconds that each update takes longer from there on, where it was accepted.
    """

    at: int
    sentence: str
    fit: Fit | None = None
    per_update: float | None = None


def second_node(series: Series, choice: Choice | None) -> SecondNode | None:
    """Look for a break; None where nothing ran on several nodes, or nothing on one, or work grows."""
    one = [count for count, nodes in series.nodes.items() if nodes == 1]
    several = [count for count, nodes in series.nodes.items() if nodes > 1]
    if not one or not several or series.work == "weak":
        return None
    at = min(several)
    few = len(one) < ON_EACH_SIDE or len(several) < ON_EACH_SIDE or len(one) + len(several) < FOR_MORE
    if few or choice is None or series.update is None or max(one) >= at or not series.updates:
        return SecondNode(
            at,
            f"Whether the second node makes a break cannot be told: that takes {FOR_MORE} different counts,"
            f" {ON_EACH_SIDE} or more of them on one node and {ON_EACH_SIDE} or more on several, all above"
            " those on one, and a global batch that is fixed or grows with the workers.",
        )
    counts, seconds = series.counts, series.seconds
    broken = _broken(choice.fit.law, at, series)
    with_break = fit(broken, counts, seconds)
    error = foretelling_error(broken, counts, seconds)
    if with_break is None or not beats(error, choice.error) or not _supported(series, choice.fit, with_break):
        return SecondNode(at, "There is no sign of a break at the second node.")
    # The coefficient is of all updates of a training on the fewest workers.
    per_update = with_break.coefficients[-1] / series.updates
    if series.update == "growing":
        per_update /= series.key.workers
    return SecondNode(
        at,
        f"From the second node on ({at} workers) each update takes {1000 * per_update:.3g} ms longer than the"
        f" counts on one node foretell: with that break the law is off by {100 * error:.2g} % at counts left"
        f" out, without it by {100 * choice.error:.2g} %.",
        with_break,
        per_update,
    )


def _broken(law: Law, at: int, series: Series) -> Law:
    shape: Callable[[Array], Array]
    if series.update == "growing":  # n times fewer updates
        text, shape = f"/n from {at} workers on", lambda n: (n >= at) / n
    else:
        text, shape = f" from {at} workers on", lambda n: (n >= at) * n**0
    extra = Term(text, shape, "exchange between nodes")
    return replace(
        law,
        name=f"{law.name}-second-node",
        label=f"{law.label} with a break at the second node",
        terms=(*law.terms, extra),
    )


def _supported(series: Series, without: Fit, with_break: Fit) -> bool:
    """F test of the break's coefficient."""
    import numpy as np
    from scipy.special import fdtrc

    n, times = np.asarray(series.counts, float), np.asarray(series.seconds, float)

    def squares(found: Fit) -> float:
        errors = np.log(times / found.law.seconds(n, found.coefficients))
        return float(errors @ errors)

    freedom = len(times) - len(with_break.law.terms)
    left = squares(with_break)
    if freedom < 1:
        return False
    if left == 0:
        return True
    return float(fdtrc(1, freedom, max(0.0, squares(without) - left) / (left / freedom))) < LEVEL
