"""Records of a trained model: how to apply it to data, its best epoch, and samples with their predictions."""

from typing import Any, Literal

from pydantic import Field

from scalestudy.config.settings import ResolvedTrain
from scalestudy.plugins.engines import DEFAULT
from scalestudy.store.records import Record

SCRATCH = "none"
"""Value of `weights` under [train] for a model that starts without pretrained weights."""


class ModelRecord(Record):
    """`model.json` of a run folder, and the JSON file beside an exported model."""

    schema_version: Literal[1] = 1
    engine: str = DEFAULT
    """Engine that trained it and can load it."""
    task: str
    """Name of the task, or the path of its file; "" while a model is used without the task's code."""
    task_checksum: str = ""
    """SHA-256 of that file in hexadecimal digits; "" for a task with a name."""
    kind: str
    """Kind of data: "masks" (a class for every pixel), "classes" (one for every sample) or "custom" (read by
    the task)."""
    input_shape: tuple[int, ...]
    """Height, width and channels of an input; () if the task reads its data itself."""
    dtype: str
    """Data type of a stored input: "uint8", "uint16", "float32"."""
    scale: float
    """Factor that scales stored inputs to [0, 1], the range that the model was trained on."""
    class_names: list[str]
    """Names of the classes, by index."""
    ignore: int | None = None
    """Class index of padding in masks."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The section [data] of the study: how images were read."""
    train: dict[str, Any] = Field(default_factory=dict)
    """The section [train] of the study."""
    class_weights: tuple[float, ...] | None = None
    """Factor of the loss of each class."""
    weights: str = "last"
    """Epoch of the weights: "last" or "best"."""

    @property
    def rebuilt(self) -> ResolvedTrain:
        """Settings for building the model again to load its weights, without pretrained weights."""
        # Required keys, which do not change the model; a record may lack some.
        least = {
            "epochs": 1,
            "batch_size": 1,
            "optimizer": "sgd",
            "learning_rate": 1.0,
            "schedule": "constant",
        }
        settings: dict[str, Any] = dict(least)
        for key, value in self.train.items():
            # Another version may have had other keys.
            if key in ResolvedTrain.model_fields:
                settings[key] = value
        # Pretrained weights would be downloaded, only to be replaced.
        if settings.get("weights"):
            settings["weights"] = SCRATCH
        settings["frozen_epochs"] = 0
        return ResolvedTrain.model_validate(settings)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an input."""
        return self.input_shape[0], self.input_shape[1]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


class BestRecord(Record):
    """`best.json`: the epoch of the weights in `best.keras`."""

    schema_version: Literal[1] = 1
    epoch: int
    """Epoch, counted from 1."""
    metric: str
    """Metric that was compared, on the validation set."""
    value: float
    """Its value after that epoch."""


class GallerySample(Record):
    """One sample."""

    name: str
    roles: list[str]
    """Why it is shown: "best by loss", "median by loss", "worst by loss"."""
    loss: float
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
    considered: int
    """Number of samples from which these were chosen."""
    of: int
    """Number of samples in the validation set."""
    weights: str = "last"
    """Epoch of the weights: "last" or "best"."""
    class_names: list[str] = Field(default_factory=list)
    samples: list[GallerySample]
