"""Estimates as text in sentences."""

from scalestudy.analysis.estimate import Estimate


def format_ends(estimate: Estimate) -> str:
    """A value with the ends of its interval, if it has one: `0.81 (0.75 to 0.87)`."""
    text = f"{estimate.value:.2f}"
    if estimate.low is None:
        return text
    return f"{text} ({estimate.low:.2f} to {estimate.high:.2f})"
