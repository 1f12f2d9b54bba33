"""A few validation samples with truth and prediction: `gallery.json`."""

from typing import Literal

from pydantic import Field

from scalestudy.config.objectives import Better
from scalestudy.store.records import Record


class GallerySample(Record):
    """One sample."""

    name: str
    roles: list[str]
    """Why it is shown: "best by loss", "median by iou"."""
    loss: float
    quality: float | None = None
    """The metric on this sample alone; None if it is undefined."""
    truth: str | None = None
    """Its class, if samples have classes."""
    predicted: str | None = None
    probability: float | None = None
    """Probability of the predicted class."""
    pictures: dict[str, str] = Field(default_factory=dict)
    """PNG files as base64, by what they show: "image", "truth", "prediction", "difference"."""


class GalleryRecord(Record):
    """The samples, those with the smallest loss first."""

    schema_version: Literal[1] = 1
    kind: str
    metric: str
    better: Better | None = None
    considered: int
    """Number of samples from which these were chosen."""
    of: int
    """Number of samples in the validation set."""
    weights: str = "last"
    """Epoch of the weights: "last" or "best"."""
    class_names: list[str] = Field(default_factory=list)
    samples: list[GallerySample]
