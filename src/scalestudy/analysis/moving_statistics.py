"""Whether moving statistics still hold too much of their initial values to judge a model by."""

LARGEST_INITIAL_SHARE = 0.01
"""Share of their initial values above which moving statistics falsify a measured quality."""


def warning_of(share: float | None, updates: int | None) -> str | None:
    """Return a sentence if moving statistics hold too large a `share` of their initial values, else None."""
    if share is None or share <= LARGEST_INITIAL_SHARE:
        return None
    return f"{updates} updates: moving statistics still hold {100 * share:.0f} % of their initial values"
