"""One worker, alone."""

from scalestudy.strategies.base import Strategy


class Single(Strategy):
    """One worker in one process: the reference that all others are held against."""

    name = "single"
