"""Karp and Flatt's metric: the serial share that one measured speed-up would come from.

Karp and Flatt, "Measuring parallel processor performance", Communications of the ACM 33 (1990). Where it
stays level as workers grow, time is lost to serial work; where it rises, to what grows with them.
"""

from scalestudy.analysis.statistics import NOTHING, Estimate


def karp_flatt(speedup: Estimate, workers: float) -> Estimate:
    """Serial share e = (1/S - 1/n) / (1 - 1/n), with the ends of the speed-up's interval.

    Args:
        speedup: S(n); a relative one is on n / n0 workers.
        workers: n, or n / n0; nothing is said at 1. Below 0 the speed-up is more than ideal.
    """
    if speedup.value is None or speedup.value <= 0 or workers <= 1:
        return NOTHING

    def share(value: float) -> float:
        return (1 / value - 1 / workers) / (1 - 1 / workers)

    if speedup.low is None or speedup.high is None or speedup.low <= 0:
        return Estimate(share(speedup.value))
    return Estimate(share(speedup.value), share(speedup.high), share(speedup.low))
