"""Words for verdicts on quality: how much better or worse, and by which margin that was judged."""

from scalestudy.analysis.estimate import Estimate, gains_of
from scalestudy.config.metric_senses import Better


def describe_change(
    kind: str,
    change: Estimate,
    margin: float,
    better: Better,
    digits: int,
) -> str:
    """Words for a change of quality of which the verdict is `kind`, without a full stop."""
    if change.value is None:
        return "not enough runs to tell (a run ended without a finite quality)"
    if change.low is None or change.high is None:
        side = "higher"
        if change.value < 0:
            side = "lower"
        size = f"{abs(change.value):.{digits}f}"
        return f"{size} {side} in single runs (add seeds)"
    low, high = gains_of(change.low, change.high, better)
    if kind == "worse":
        return f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
    if kind == "no-worse":
        return _no_worse(low, high, margin, better, digits)
    least = format_signed(change.low, digits)
    most = format_signed(change.high, digits)
    accepted = _length(margin, digits)
    return f"not enough runs to tell (between {least} and {most}, with a margin of {accepted})"


def _no_worse(
    low: float,
    high: float,
    margin: float,
    better: Better,
    digits: int,
) -> str:
    """Words for a gain from `low` to `high` that is no loss beyond `margin`."""
    if high < 0:
        # A loss that is certain is named, though it is accepted.
        loss = f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
        return f"{loss}, within the accepted {_length(margin, digits)}"
    if low > 0:
        return f"no worse (better by {_length(low, digits)} to {_length(high, digits)})"
    side = "below"
    if better == "lower":
        side = "above"
    most = _length(max(0.0, -low), digits)
    return f"no worse (at most {most} {side})"


def format_signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, with a true minus sign: `+0.012`, `−0.004`."""
    sign = "−" if value < 0 else "+"
    return f"{sign}{abs(value):.{digits}f}"


def _length(value: float, digits: int) -> str:
    least = 10.0**-digits
    if 0 < value < least / 2:
        return f"<{least:.{digits}f}"
    return f"{value:.{digits}f}"
