"""Whether moving statistics still hold too much of their initial values to judge a model by."""

LARGEST_INITIAL_SHARE = 0.01
"""Share of their initial values above which moving statistics falsify a measured quality."""


def falsify_quality(share: float | None) -> bool:
    """Whether moving statistics hold too large a `share` of their initial values."""
    return share is not None and share > LARGEST_INITIAL_SHARE
