"""A loss and a metric by name."""

from scalestudy.losses import cross_entropy
from scalestudy.metrics import Accuracy

loss = cross_entropy


class Share(Accuracy):
    """The share of samples whose class is found."""
