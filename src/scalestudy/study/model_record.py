"""What a trained model is of, beside its file: all that whoever uses it needs to know of its data."""

from typing import Any, Literal

from pydantic import Field

from scalestudy.study.engines import DEFAULT
from scalestudy.study.records import Record
from scalestudy.study.settings import ResolvedTrain

MODEL_SCHEMA: Literal[1] = 1
EMBEDDED = "scalestudy.json"
"""Name of the record inside an exported model: in a .keras file's archive, in a SavedModel's folder."""
SCRATCH = "none"
"""What `weights` under [train] says of a model that begins without any."""


class ModelRecord(Record):
    """`model.json` of a run folder, and the JSON beside an exported model."""

    schema_version: Literal[1] = MODEL_SCHEMA
    engine: str = DEFAULT
    """What computed it, and loads it."""
    task: str
    """Name of the task, or the path of its file."""
    task_checksum: str = ""
    """SHA-256 of that file, in hexadecimal digits; "" of a task that goes by a name."""
    kind: str
    """"masks" (a class for every pixel), "classes" (one for every sample) or "custom" (read by its task)."""
    input_shape: tuple[int, ...]
    """Height, width and channels of an input; () of data that a task reads itself."""
    dtype: str
    """Type of an input as it was stored: "uint8", "uint16", "float32"."""
    scale: float
    """Multiplies stored inputs into [0, 1], which is what the model was trained on."""
    inputs: Literal["scaled", "stored"] = "scaled"
    """What the model in the file takes: inputs that were multiplied by `scale`, or as stored (it does so
    itself)."""
    class_names: list[str]
    """In the order of their indices."""
    ignore: int | None = None
    """Class index of padding in masks."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The section [data] of the study: how images were read."""
    train: dict[str, Any] = Field(default_factory=dict)
    """The section [train] of the study."""
    class_weights: tuple[float, ...] | None = None
    """What the loss weighs classes by, one number a class."""
    metric: str | None = None
    """Name of the quality."""
    weights: str = "last"
    """Of which epoch: "last", or "best"."""

    @property
    def rebuilt(self) -> ResolvedTrain:
        """How to train, for who builds the model again and then restores its weights: it begins with none."""
        least = {
            "epochs": 1, "batch_size": 1, "optimizer": "sgd", "learning_rate": 1.0, "schedule": "constant",
        }  # fmt: skip
        known = {key: value for key, value in self.train.items() if key in ResolvedTrain.model_fields}
        begun = {"weights": SCRATCH} if known.get("weights") else {}
        return ResolvedTrain.model_validate(least | known | begun | {"frozen_epochs": 0})

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an input."""
        return self.input_shape[0], self.input_shape[1]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


class BestRecord(Record):
    """`best.json`: of which epoch `best.keras` is."""

    schema_version: Literal[1] = MODEL_SCHEMA
    epoch: int
    """Counted from 1."""
    metric: str
    """What was compared, over the validation set."""
    value: float
    """What it was after that epoch."""
